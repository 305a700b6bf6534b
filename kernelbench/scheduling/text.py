"""The study of policies as text: best policy a variant, the two sweeps, the frontier."""

from __future__ import annotations

from typing import Any

from kernelbench.metrics.intervals import LEVEL
from kernelbench.scheduling.study import sweep
from kernelbench.views import tables

HEADERS = ("policy", "geo. mean", "retention", "median ret.", "attempts saved", "tokens saved", "USD saved", "gain")
_DEPTH = 3  # of headings


def render(data: dict[str, Any], form: str) -> str:
    """``form`` is one of ``tables.FORMATS``."""
    if form == "json":
        return tables.to_json(data)
    if form == "csv":
        rows = [{"variant": of["name"], **row} for of in data["variants"] for row in (of["fixed"], *of["policies"])]
        return tables.to_csv(rows)
    parts = [
        tables.heading("Best policy of each variant", form, _DEPTH),
        tables.table(("variant", *HEADERS), best_rows(data), form),
    ]
    for variant in data["variants"]:
        for title, rows in (("eps at w = 0", sweep(variant, True)), ("w at eps = 100 %", sweep(variant, False))):
            if rows:
                parts += [tables.heading(f"{variant['name']}: {title}", form, _DEPTH), _table(rows, form)]
        if missing := variant["without_bound"]:
            told = (f"{variant['name']}: {missing} of {variant['problems']} problem(s) have no t_SOL under FP16; eps "
                    "cannot stop them.")  # fmt: skip
            parts.append(tables.paragraph(told, form))
    parts.append(tables.paragraph(notes(data), form))
    return "\n\n".join(parts)


def best_rows(data: dict[str, Any]) -> list[tuple[str, ...]]:
    """Return for each variant the fixed run and its best policy."""
    rows = []
    for variant in data["variants"]:
        rows.append((variant["name"], *cells(variant["fixed"])))
        if variant["best"]:
            rows.append((variant["name"], *cells(variant["best"])))
        else:
            rows.append((variant["name"], "none retains enough", *[""] * (len(HEADERS) - 1)))
    return rows


def _table(rows: list[dict[str, Any]], form: str) -> str:
    return tables.table(HEADERS, map(cells, rows), form)


def cells(row: dict[str, Any]) -> tuple[str, ...]:
    """Return a policy's figures under HEADERS."""
    mean = row["geometric_mean"]
    return (
        row["policy"],
        "-" if mean is None else f"{mean:.3f}",
        shown(row["retention"], ".1%"),
        shown(row["median_retention"], ".1%"),
        *(shown(row[f"{name}_saved"], ".1%") for name in ("attempts", "tokens", "usd")),
        shown(row["gain"], ".2f"),
    )


def shown(figure: dict[str, float | None] | None, form: str) -> str:
    """Return a figure with its interval as text; ``-`` where it is not defined."""
    if figure is None or figure["value"] is None:
        return "-"
    if figure["low"] is None:
        return format(figure["value"], form)
    return f"{figure['value']:{form}} [{figure['low']:{form}}, {figure['high']:{form}}]"


def notes(data: dict[str, Any]) -> str:
    """Return what the figures mean."""
    unsolved = "are left out of means" if data["unsolved"] == "skip" else "count as 1"
    return (
        f"[low, high]: {LEVEL:.0%} bootstrap interval. Means are of settled speedups of first measurements; "
        f"unsolved problems {unsolved}. Gain is (g_policy / g_fixed) (T_fixed / T_policy), T in tokens, or in attempts "
        f"where none are known. The best policy gains most among those that retain {data['least_retention']:.0%} "
        f"of the geometric mean. The frontier (--plot, --format json) is over {data['cost_of']}."
    )
