"""The study of policies as text: best policy a variant, the two sweeps, the frontier."""

from __future__ import annotations

from typing import Any

from kernelbench.metrics.intervals import LEVEL
from kernelbench.scheduling.study import sweep
from kernelbench.views import tables

_HEADERS = ("policy", "geo. mean", "retention", "median ret.", "attempts saved", "tokens saved", "USD saved", "gain")


def render(data: dict[str, Any], form: str) -> str:
    """``form`` is one of ``tables.FORMATS``."""
    if form == "json":
        return tables.to_json(data)
    if form == "csv":
        rows = [{"variant": of["name"], **row} for of in data["variants"] for row in (of["fixed"], *of["policies"])]
        return tables.to_csv(rows)
    parts = [_heading("Best policy of each variant", form), _best(data, form)]
    for variant in data["variants"]:
        for title, rows in (("eps at w = 0", sweep(variant, True)), ("w at eps = 100 %", sweep(variant, False))):
            if rows:
                parts += [_heading(f"{variant['name']}: {title}", form), _table(rows, form)]
        if missing := variant["without_bound"]:
            parts.append(f"{variant['name']}: {missing} of {variant['problems']} problem(s) have no t_SOL under FP16; "
                         "eps cannot stop them.")  # fmt: skip
    parts.append(_notes(data))
    return "\n\n".join(parts)


def _best(data: dict[str, Any], form: str) -> str:
    rows = []
    for variant in data["variants"]:
        rows.append((variant["name"], *_cells(variant["fixed"])))
        if variant["best"]:
            rows.append((variant["name"], *_cells(variant["best"])))
        else:
            rows.append((variant["name"], "none retains enough", *[""] * (len(_HEADERS) - 1)))
    return tables.table(("variant", *_HEADERS), rows, form)


def _table(rows: list[dict[str, Any]], form: str) -> str:
    return tables.table(_HEADERS, map(_cells, rows), form)


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    mean = row["geometric_mean"]
    return (
        row["policy"],
        "-" if mean is None else f"{mean:.3f}",
        _shown(row["retention"], ".1%"),
        _shown(row["median_retention"], ".1%"),
        *(_shown(row[f"{name}_saved"], ".1%") for name in ("attempts", "tokens", "usd")),
        _shown(row["gain"], ".2f"),
    )


def _shown(figure: dict[str, float | None] | None, form: str) -> str:
    if figure is None or figure["value"] is None:
        return "-"
    if figure["low"] is None:
        return format(figure["value"], form)
    return f"{figure['value']:{form}} [{figure['low']:{form}}, {figure['high']:{form}}]"


def _heading(text: str, form: str) -> str:
    return f"### {text}" if form == "markdown" else text


def _notes(data: dict[str, Any]) -> str:
    unsolved = "are left out of means" if data["unsolved"] == "skip" else "count as 1"
    return (
        f"[low, high]: {LEVEL:.0%} interval over problems. Means are of settled speedups of first measurements; "
        f"unsolved problems {unsolved}. Gain is (g_policy / g_fixed) (T_fixed / T_policy), T in tokens, or in attempts "
        f"where tokens are not known. The best policy gains most among those that retain {data['least_retention']:.0%} "
        f"of the geometric mean. The frontier (--plot, --format json) is over {data['cost_of']}."
    )
