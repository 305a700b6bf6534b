"""The speed-of-light report of one workload, as JSON and as Markdown: views of an ``Analysis``."""

from __future__ import annotations

from typing import Any

from harness.sol.bounds import Analysis, Bound, floor, speed_of_light
from harness.sol.clock import Clock, choose
from harness.sol.hardware import Limits

_FP16_NOTE = "FP16 on the tensor cores, FP32 in memory: inputs, parameters and outputs stay as they are"


def to_json(analysis: Analysis, limits: Limits, clock: Clock | None = None) -> dict[str, Any]:
    """The report as data, by default at the rated clocks. FLOPs, bytes, ms, MHz, TFLOP/s and GB/s."""
    workload, direct, clock = analysis.workload, analysis.direct, clock or choose(limits)
    tf32, fp16 = _bounds(analysis, limits, clock)
    cold, hot = floor(analysis, limits), floor(analysis, limits, cold=False)
    return {
        "problem_id": str(workload.problem.id),
        "problem_name": workload.problem.name,
        "workload": workload.name,
        "sizes": workload.sizes,
        "dtype": str(analysis.dtype).removeprefix("torch."),
        "device": limits.name,
        "device_name": limits.title,
        "total_flops": round(direct.flops),
        "contraction_flops": round(direct.contraction),
        "elementwise_flops": round(direct.elementwise),
        "total_bytes": round(direct.bytes),
        "read_bytes": round(direct.reads),
        "written_bytes": round(direct.writes),
        "storage_bytes": analysis.storage_bytes,
        "arithmetic_intensity": direct.flops / direct.bytes if direct.bytes else None,
        "sm_clock_mhz": clock.sm_mhz,
        "memory_clock_mhz": clock.memory_mhz,
        "clock": clock.source,
        "max_sm_clock_mhz": limits.max_mhz,
        "bandwidth_gbps": tf32.gbps,
        "theoretical_runtime_ms": tf32.ms,
        "compute_ms": tf32.compute_ms,
        "memory_ms": tf32.memory_ms,
        "bottleneck": tf32.bottleneck,
        "peak_type": tf32.peak_type,
        "peak_tflops_effective": tf32.peak_tflops,
        "ridge_point": tf32.ridge,
        "theoretical_runtime_ms_fp16": fp16.ms,
        "compute_ms_fp16": fp16.compute_ms,
        "bottleneck_fp16": fp16.bottleneck,
        "fp16_peak_type": fp16.peak_type,
        "fp16_peak_tflops_effective": fp16.peak_tflops,
        "fp16_note": _FP16_NOTE,
        "floor_ms": cold.ms,
        "floor_ms_hot": hot.ms,
        "floor_flops": analysis.least.flops,
        "floor_peak_tflops": cold.peak_tflops,
        "floor_bandwidth_gbps": cold.gbps,
        "discounts": [vars(discount) for discount in analysis.discounts],
        "notes": list(analysis.notes),
        "unknown_operators": list(analysis.unknown),
        "operators": [vars(row) for row in analysis.rows],
    }


def markdown(analysis: Analysis, limits: Limits, clock: Clock | None = None) -> str:
    """Return the same as text, in the sections of an engineer's analysis."""
    clock = clock or choose(limits)
    data = to_json(analysis, limits, clock)
    tf32, fp16 = _bounds(analysis, limits, clock)
    workload, problem = analysis.workload, analysis.workload.problem
    sections = [
        f"# Speed of light: {problem.id} {problem.name}",
        f"{problem.summary}\n\n"
        f"Workload `{workload.name}` ({_sizes(workload.sizes)}), {data['dtype']}, on {limits.title}.",
        _characterisation(data),
        _hardware(limits, tf32, fp16, data),
        _minimum_time(tf32, data),
        _roofline(tf32, data),
        _summary(tf32, data),
        _augmentation(tf32, fp16),
        _floor(data),
    ]
    return "\n\n".join(sections) + "\n"


def _bounds(analysis: Analysis, limits: Limits, clock: Clock) -> tuple[Bound, Bound]:
    """t_SOL under TF32, and under FP16."""
    clocks = {"sm_mhz": clock.sm_mhz, "memory_mhz": clock.memory_mhz}
    return speed_of_light(analysis, limits, **clocks), speed_of_light(analysis, limits, fp16=True, **clocks)


def _characterisation(data: dict) -> str:
    rows = [
        f"| {row['number']} | {row['name']} | {' '.join(map(_shape, row['inputs']))} | {_shape(row['output'])} "
        f"| {row['dtype']} | {row['flops']:,} | {row['bytes']:,} | {row['live_share']:.4g} |"
        for row in data["operators"]
    ]
    table = [
        "| # | operator | inputs | output | type | FLOPs | bytes alone | of it needed |",
        "| --: | --- | --- | --- | --- | --: | --: | --: |",
        *rows,
    ]
    lines = [
        f"- FLOPs: {_scientific(data['total_flops'])} ({data['contraction_flops']:,} in matrix products and "
        f"convolutions, {data['elementwise_flops']:,} elementwise); a multiply-add counts 2",
        f"- Bytes at best: {_scientific(data['total_bytes'])} ({data['total_bytes'] / 2**20:,.2f} MiB): "
        f"{data['read_bytes']:,} read, {data['written_bytes']:,} written, each element once",
        f"- Arithmetic intensity: {_intensity(data)} FLOPs/byte",
        *(f"- {note}" for note in data["notes"]),
    ]
    if data["unknown_operators"]:
        lines.append(f"- Not known here, and counted as no FLOPs: {', '.join(data['unknown_operators'])}")
    return "## 1. Problem characterisation\n\n" + "\n".join(lines) + "\n\n" + "\n".join(table)


def _hardware(limits: Limits, tf32: Bound, fp16: Bound, data: dict) -> str:
    ratio = data["sm_clock_mhz"] / limits.rated_mhz
    datasheet = {"FP32": limits.fp32, "TF32": limits.tf32, "FP16": limits.fp16}
    lines = [
        f"- SM clock: {data['sm_clock_mhz']:g} of {limits.rated_mhz} MHz ({data['clock']}), ratio {ratio:.4f}; "
        "peaks follow it",
        f"- Datasheet, dense: {', '.join(f'{n} {rate:g} TFLOP/s' for n, rate in datasheet.items() if rate)}; "
        f"{limits.gbps:g} GB/s; L2 {limits.l2_bytes / 2**20:g} MiB; {limits.multiprocessors} SMs",
        f"- Effective peak here: {tf32.peak_tflops:.2f} TFLOP/s ({tf32.peak_type}); "
        f"with FP16 {fp16.peak_tflops:.2f} TFLOP/s ({fp16.peak_type}); {tf32.gbps:g} GB/s",
    ]
    return "## 2. Hardware limits\n\n" + "\n".join(lines)


def _minimum_time(bound: Bound, data: dict) -> str:
    return "\n".join(
        [
            f"## 3. Minimum time ({bound.peak_type})",
            "",
            f"- Compute: {bound.compute_ms:.4f} ms",
            f"- Memory: {_scientific(data['total_bytes'])} B / {bound.gbps:g} GB/s = {bound.memory_ms:.4f} ms",
            f"- t_SOL = max = {bound.ms:.4f} ms",
        ]
    )


def _roofline(bound: Bound, data: dict) -> str:
    if data["arithmetic_intensity"] is None:
        return "## 4. Roofline\n\nNothing has to be moved, so there is no intensity."
    side = "right" if data["arithmetic_intensity"] > bound.ridge else "left"
    return (
        f"## 4. Roofline\n\n- Ridge point: {bound.peak_tflops:.2f} TFLOP/s / {bound.gbps:g} GB/s = "
        f"{bound.ridge:.1f} FLOPs/byte\n- Intensity {_intensity(data)} FLOPs/byte, {side} of the ridge"
    )


def _summary(bound: Bound, data: dict) -> str:
    return (
        f"## 5. Summary\n\n- Theoretical minimum: **{bound.ms:.3f} ms** ({data['peak_type']})\n"
        f"- Bottleneck: **{bound.bottleneck}**"
    )


def _augmentation(tf32: Bound, fp16: Bound) -> str:
    def row(what: str, value: str) -> str:
        return f"| {what} | {value.format(tf32)} | {value.format(fp16)} |"

    ratio = fp16.ms / tf32.ms if tf32.ms else 1.0
    return "\n".join(
        [
            "## 6. FP16 augmentation",
            "",
            f"{_FP16_NOTE}.",
            "",
            f"| | {tf32.peak_type} | {fp16.peak_type} |",
            "| --- | --: | --: |",
            row("peak", "{0.peak_tflops:.2f} TFLOP/s"),
            row("compute", "{0.compute_ms:.4f} ms"),
            row("memory", "{0.memory_ms:.4f} ms"),
            row("SOL", "{0.ms:.4f} ms"),
            row("bottleneck", "{0.bottleneck}"),
            "",
            f"Ratio {ratio:.3f}.",
        ]
    )


def _floor(data: dict) -> str:
    lines = [
        "## 7. Integrity floor",
        "",
        f"No honest kernel is quicker than **{data['floor_ms']:.4f} ms** after a flushed L2 "
        f"({data['floor_ms_hot']:.4f} ms hot): {data['floor_peak_tflops']:.1f} TFLOP/s, "
        f"{data['floor_bandwidth_gbps']:.0f} GB/s, {_scientific(data['floor_flops'])} FLOPs.",
        "",
        "- elementwise operations are not counted, and what is written may stay in the L2",
    ]
    lines += [f"- {d['where']}: × {d['factor']:.4g}, {d['reason']}" for d in data["discounts"]]
    return "\n".join(lines)


def _sizes(sizes: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in sizes.items()) or "as published"


def _shape(shape: list[int]) -> str:
    return "×".join(map(str, shape)) or "scalar"


def _scientific(value: float) -> str:
    return f"{value:.4g}" if value < 1e4 else f"{value:.3e}"


def _intensity(data: dict) -> str:
    value = data["arithmetic_intensity"]
    return "-" if value is None else f"{value:.1f}" if value >= 10 else f"{value:.3f}"
