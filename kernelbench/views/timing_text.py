"""Everything that a record knows about the timing of one solution, on a page of the terminal. Pure functions of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.result import Result, first_line
from harness.timing.statistics import round_means_ms
from kernelbench.metrics import fast_p, settled
from kernelbench.views.leaderboard import duration
from kernelbench.views.tables import table

_WIDTH = 78
_BINS = 12
_BAR = 48
_LEVELS = "▁▂▃▄▅▆▇█"
_EIGHTHS = " ▏▎▍▌▋▊▉"
_NAME = 46  # characters of a kernel's name
_ENDED = {
    "cv_under_target": "CV under target",
    "cv_settled": "CV settled",
    "decided": "decided: each round says the same",
    "max_rounds": "at the ceiling in rounds",
    "max_seconds": "at the ceiling in time",
    "held_up": "held up between calls",
}


def page(result: Result, counters: Sequence[dict[str, Any]] | str | None = None) -> str:
    """``counters`` are those of ``nsight``, or why there are none."""
    parts = [_head(result)]
    if result.timing and {"samples_ms", "median_ms"} <= result.timing.keys():
        parts += [
            _section("Time of a call, over rounds", _statistics(result)),
            _section("Calls of the solution", histogram(result.timing["samples_ms"])),
            _section("Rounds over time, each its mean", _over_time(result)),
            _section("Witnesses", _witnesses(result)),
            _section("Clocks", _clocks(result)),
            _section("Kernels of a call (CUPTI)", _kernels(result.timing.get("profile"))),
        ]
    elif result.timing:
        parts.append(_section("Time of a call", f"median {duration(result.timing)}; the record holds no samples"))
    parts += [
        _section("Nsight Compute", _nsight(counters)),
        _section("Speed of light", _speed_of_light(result)),
        _section("Where the evaluation's time went", _stages(result)),
    ]
    return "\n\n".join(part for part in parts if part)


def _section(title: str, text: str) -> str:
    return f"{title}\n{'-' * len(title)}\n{text}" if text else ""


def _head(result: Result) -> str:
    workload, sizes = result.workload.get("name", "?"), result.workload.get("sizes") or {}
    sizes = ", ".join(f"{key}={value}" for key, value in sizes.items())
    device, versions = result.device.get("name", "unknown device"), result.versions
    software = ", ".join(f"{name} {versions[name]}" for name in ("torch", "cuda", "driver") if versions.get(name))
    lines = [
        f"{result.problem} {result.problem_name}   {result.solution['name']} ({result.solution['language']})",
        f"{workload} ({sizes}), {result.precision}" if sizes else workload,
        f"{device}; {software}; {result.started}",
        "",
        f"status   {result.status}" + (f" ({result.rule})" if result.rule else ""),
    ]
    lines += [f"    {line}" for line in result.message.splitlines()]
    if result.correct:
        lines += [f"speedup  {_speedup(name, baseline)}" for name, baseline in result.baselines.items()]
    if result.correct and result.speedup is None:
        lines.append(f"         none counts: {settled.why_no_speedup(result)}")
    return "\n".join(lines)


def _speedup(name: str, baseline: dict[str, Any]) -> str:
    if "error" in baseline:
        return f"none over {name}, which did not run: {first_line(baseline['error'])}"
    if baseline.get("speedup") is None:
        return f"over {name} is not in the record"
    text = f"{baseline['speedup']:.3f}x over {name}"
    if interval := baseline.get("interval"):
        text += f" [{interval[0]:.3f}, {interval[1]:.3f}]: {baseline.get('verdict')}"
    if not baseline.get("paired", True):
        text += f"\n         not in turn: measured {baseline.get('measured')}, kept in {baseline.get('file')}"
    return text


def series(result: Result) -> dict[str, dict[str, Any]]:
    """The solution and the baselines, by name, as far as there are samples of them."""
    timings = {"solution": result.timing or {}, **result.baselines}
    return {name: timing for name, timing in timings.items() if timing.get("samples_ms") and "median_ms" in timing}


def _statistics(result: Result) -> str:
    shown = {
        "median": lambda t: duration(t),
        "quartiles": lambda t: f"{ms(t['q1_ms'])} .. {ms(t['q3_ms'])}" if {"q1_ms", "q3_ms"} <= t.keys() else "",
        "min .. max": lambda t: f"{ms(t['min_ms'])} .. {ms(t['max_ms'])}" if {"min_ms", "max_ms"} <= t.keys() else "",
        "mean": lambda t: ms(t["mean_ms"]) if "mean_ms" in t else "",
        "CV": lambda t: f"{100 * t['cv']:.2f} %" if "cv" in t else "",
        "sem": lambda t: f"{100 * t['sem']:.2f} %" if t.get("sem") is not None else "",
        "calls": lambda t: str(t.get("samples", "")) + (f" in {t['rounds']} rounds" if "rounds" in t else ""),
        "ended": _ended,
        "stability": lambda t: t.get("stability", ""),
        "queue": _queue,
        "method": lambda t: f"{t.get('method', '')}, {t.get('cache', '')} cache",
    }
    timings = series(result)
    rows = [(name, *(of(timing) for timing in timings.values())) for name, of in shown.items()]
    rows = [row for row in rows if any(row[1:])]
    return table(("", *timings), rows, "terminal")


def _ended(timing: dict[str, Any]) -> str:
    if timing.get("placements", 1) > 1:
        return f"{timing['placements']} places in memory"
    stopped = timing.get("stopped", "")
    earlier = f" ({timing['criterion']})" if "criterion" in timing else ""  # in records of a time with several rules
    return _ENDED.get(stopped, stopped) + earlier


def _queue(timing: dict[str, Any]) -> str:
    if timing.get("method") != "cuda_events" or "queue_full" not in timing:
        return ""
    if not timing["queue_full"]:
        underfull, rounds = timing.get("underfull_rounds"), timing.get("rounds")
        of = "" if underfull is None else f" in {underfull} of {rounds} rounds"
        return f"not full{of}: launches count"
    interrupted = timing.get("interrupted_rounds", 0)
    return "kept full" + (f", {interrupted} rounds left out" if interrupted else "")


def histogram(samples_ms: Sequence[float]) -> str:
    """Bars over equal bins; what lies far above the rest (3 interquartile ranges) is counted in the last line."""
    ordered = sorted(samples_ms)
    low, q1, q3 = ordered[0], ordered[len(ordered) // 4], ordered[3 * len(ordered) // 4]
    high = max(sample for sample in ordered if sample <= q3 + 3 * (q3 - q1))
    if high == low:
        return f"all {len(ordered)} between {ms(low)} and {ms(ordered[-1])}"
    width = (high - low) / _BINS
    inside = [sample for sample in ordered if sample <= high]
    counts = [0] * _BINS
    for sample in inside:
        counts[min(int((sample - low) / width), _BINS - 1)] += 1
    lines = [f"{ms(low + i * width):>12}  {_bar(count, max(counts))} {count}" for i, count in enumerate(counts)]
    if len(inside) < len(ordered):
        lines.append(f"{'above':>12}  {len(ordered) - len(inside)}, up to {ms(ordered[-1])}")
    return "\n".join(lines)


def _bar(count: int, most: int) -> str:
    whole, part = divmod(8 * _BAR * count // most, 8)
    return "█" * whole + (_EIGHTHS[part] if part else "")


def sparkline(values: Sequence[float], low: float, high: float, width: int = _WIDTH) -> str:
    """One character a value, several values a character where there are more than ``width``: their mean."""
    step = -(-len(values) // width)
    means = [sum(values[i : i + step]) / len(values[i : i + step]) for i in range(0, len(values), step)]
    scale = (len(_LEVELS) - 1) / (high - low) if high > low else 0.0
    return "".join(_LEVELS[round((min(max(mean, low), high) - low) * scale)] for mean in means)


def _over_time(result: Result) -> str:
    lines = []
    for name, timing in series(result).items():
        means = round_means_ms(timing)
        lines += [f"{name}: {ms(min(means))} to {ms(max(means))}", sparkline(means, min(means), max(means))]
    return "\n".join(lines)


def _witnesses(result: Result) -> str:
    timing = result.timing
    profile, clock = timing.get("profile") or {}, timing.get("cross_check")
    seen = [(f"{timing.get('method', 'the timer')}, by call", timing.get("median_ms"), "")]
    if profile:
        seen.append(("CUPTI: first kernel's begin to last one's end", profile["span_ms"], ""))
    if isinstance(clock, dict):
        if clock["queue_held"]:
            how = f"; {clock['penalty_ms'] * 1e3:.3g} us were added to agree" if clock.get("penalty_ms") else ""
        else:
            how = "; launches count" + (", and this is its time" if clock.get("penalty_ms") else "")
        seen.append((f"judge's own clock, {clock['calls']} calls in a row, hot{how}", clock["call_ms"], ""))
    if "launch_bound_ms" in timing:
        seen.append(("wall time of a call, launch included, hot", timing["launch_bound_ms"], ""))
    for name, baseline in result.baselines.items():
        if "alone_ms" in baseline:
            note = "when the solution had ended"
            seen.append((f"{name} once more, alone", baseline["alone_ms"], f"in turn {duration(baseline)}, {note}"))
    reference = timing.get("median_ms")
    rows = []
    for index, (name, value, note) in enumerate(seen):
        apart = f"{100 * (value / reference - 1):+.1f} %" if index and not note and reference else note
        rows.append((name, ms(value), apart))
    text = table(("", "", "apart"), rows, "terminal")
    return text + f"\njudge's clock {clock}" if isinstance(clock, str) else text


def _clocks(result: Result) -> str:
    conditions = result.conditions
    units = {"sm_clock_mhz": ("SM clock", "MHz"), "memory_clock_mhz": ("memory clock", "MHz"),
             "power_w": ("power", "W"), "temperature_c": ("temperature", "C")}  # fmt: skip
    lines = [
        f"{name:<13} {seen['median']} {unit} ({seen['min']} to {seen['max']})"
        for key, (name, unit) in units.items()
        if isinstance(seen := conditions.get(key), dict)
    ]
    if lines:
        throttled = ", ".join(conditions["throttled"]) or "no" if "throttled" in conditions else "not observed"
        count = result.timing.get("throttled_samples", 0)
        lines.append(f"{'throttled':<13} {throttled}" + (f"; {count} calls under it" if count else ""))
    else:
        lines.append(conditions.get("clocks", "not observed"))
    if shares := conditions.get("bandwidth_fraction"):
        percent = " and ".join(f"{100 * share:.0f} %" for share in shares)
        lines.append(f"{'copies':<13} {percent} of the data sheet's bandwidth, before the rounds and after")
    modes = [f"{key} {value}" for key, value in conditions.items() if isinstance(value, str) and key != "clocks"]
    return "\n".join([*lines, f"{'math':<13} {', '.join(modes)}"] if modes else lines)


def _kernels(profile: dict[str, Any] | None) -> str:
    if not profile or not profile["kernels"]:
        return ""
    total = sum(kernel["ms"] for kernel in profile["kernels"]) or 1.0
    rows = [
        (
            _shortened(kernel["name"]),
            kernel["launches"],
            ms(kernel["ms"]),
            f"{100 * kernel['ms'] / total:.1f} %",
            int(kernel["registers"]) or "",
            f"{kernel['shared_bytes'] / 1024:.1f} KiB" if kernel["shared_bytes"] else "",
            "x".join(map(str, kernel["grid"])),
            "x".join(map(str, kernel["block"])),
        )
        for kernel in profile["kernels"]
    ]
    headers = ("kernel", "launches", "time", "share", "registers", "shared", "grid", "block")
    between = max(0.0, profile["span_ms"] - total)
    return table(headers, rows, "terminal") + f"\n{profile['launches']} launches; {ms(between)} of the call in none"


def _nsight(counters: Sequence[dict[str, Any]] | str | None) -> str:
    if counters is None or isinstance(counters, str):
        return counters or ""
    percent = lambda kernel, field: f"{kernel[field]:.1f} %" if field in kernel else "-"  # noqa: E731
    rows = [
        (
            _shortened(kernel["name"]),
            kernel["launches"],
            ms(kernel["ns"] / 1e6) if "ns" in kernel else "-",
            *(percent(kernel, f"{what}_percent") for what in ("sm", "dram", "l2", "occupancy")),
            int(kernel["registers"]) if "registers" in kernel else "-",
        )
        for kernel in counters
    ]
    headers = ("kernel", "launches", "time", "SM", "DRAM", "L2", "occupancy", "registers")
    note = "Throughput in percent of the peak; kernels are replayed one by one, at clocks that ncu sets."
    return f"{table(headers, rows, 'terminal')}\n{note}"


def _speed_of_light(result: Result) -> str:
    sol = result.sol
    if not sol:
        return ""
    if "unavailable" in sol:
        return f"no bound: {sol['unavailable']}"
    shares = [
        f"{name} {100 * sol[key]:.1f} %"
        for name, key in (("compute", "compute_share"), ("bandwidth", "bandwidth_share"))
        if sol.get(key) is not None
    ]
    bounds = {"t_SOL": sol.get("t_sol_ms"), "floor": sol.get("t_floor_ms")}
    figures = [f"{name} {ms(bound)}" for name, bound in bounds.items() if bound is not None]
    if figures and sol.get("sm_mhz"):
        figures[0] += f" at {sol['sm_mhz']:g} MHz" + (f" ({sol['clock']})" if "clock" in sol else "")
    percent = fast_p.percent_of_sol(result)
    share = "-" if percent is None else f"{percent:.1f}"
    reached = f"{share} % of it; bound by {sol.get('bottleneck')}; of the peaks reached: {', '.join(shares)}"
    work = [f"{result.gflops:,.1f} GFLOP/s" if result.gflops else "", f"{result.gbps:,.1f} GB/s" if result.gbps else ""]
    return "\n".join([", ".join(figures), reached, ", ".join(filter(None, work))])


def _stages(result: Result) -> str:
    total = sum(result.stages_s.values())
    if not total:
        return ""
    built = (result.build or {}).get("seconds")
    where = " (from the cache)" if built and result.build.get("cached") else ""
    lines = [f"{'build':<10} {built:8.2f} s{where}"] if built else []
    lines += [f"{name:<10} {s:8.2f} s  {_bar_of(s / total)}" for name, s in result.stages_s.items()]
    return "\n".join(line.rstrip() for line in lines)


def _bar_of(share: float) -> str:
    return "█" * round(_BAR * min(share, 1.0))


def _shortened(name: str) -> str:
    return name if len(name) <= _NAME else name[: _NAME - 3] + "..."


def ms(value: float) -> str:
    """A time in ms with four significant digits and its unit."""
    return f"{value * 1e3:.4g} us" if value < 1 else f"{value:.4g} ms"


def sanitized(errors: list[dict[str, Any]] | str) -> str:
    """Return the errors of compute-sanitizer as lines, or why there are none to show."""
    if isinstance(errors, str):
        return f"compute-sanitizer: {errors}"
    if not errors:
        return "compute-sanitizer: no error in memcheck, racecheck and initcheck"
    lines = [
        f"  {e['check']}: {e['error']}, {e['count']} times, in {e['kernel'] or 'an unknown kernel'}"
        + (f" at {e['place']}" if e["place"] else "")
        for e in errors
    ]
    return "\n".join(["compute-sanitizer:", *lines])
