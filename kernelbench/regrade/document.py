"""A regrade as sections of text and tables, for the terminal and Markdown; and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kernelbench.metrics import settled
from kernelbench.regrade.rows import Row
from kernelbench.views import tables

_CLAIMS = (
    "Claims are the archive's; everything else was measured here. A settled speedup counts a tie as 1. Inflation is "
    "the claimed over the settled speedup, of kernels that are right; over all, kernels that fail count as 1. Kernels "
    "that are right without a settled speedup are in neither."
)
_FILTERINGS = (
    "The best solution of each problem among those that a filtering leaves in. Right by value is enough to be in "
    "none, with library-only and below-floor results too."
)
_CURVES = (
    "Share of problems with a speedup of at least r: as claimed, as measured, without what labels leave out, and at "
    "the speed of light with FP16 where a bound is known."
)
_RATIOS = (0.5, 1.0, 1.5, 2.0, 4.0, 8.0)
_TRAITS = "A kernel may have several traits, and counts in each. own_kernels has none of them."


@dataclass(frozen=True)
class Section:
    """A title, a sentence on how to read it, and a table of text."""

    title: str
    note: str
    headers: Sequence[str]
    cells: Sequence[Sequence[str]]


def sections(name: str, rows: Sequence[Row], data: dict[str, Any]) -> list[Section]:
    """Return the sections of one run's regrade; ``data`` is its ``summary``."""
    return [
        Section(f"{name}: claimed against measured", _CLAIMS, *_inflation(data["inflation"])),
        Section("Where the speed comes from", _TRAITS, *_traits(data["inflation"])),
        Section("Status of each kernel", _problems(data), ("status", "kernels"), _counted(data["statuses"])),
        Section("Figures under filterings", _FILTERINGS, *_figures(data["filterings"])),
        Section("Inflation without filters", "One more band is allowed at each step.",
                *_figures(data["inflation_ladder"])),
        Section("Fast-p curves", _CURVES, *_curves(data)),
        Section("Outcomes of the review", "Each attempt that is right by value is in one band.",
                ("band", "attempts"), _counted(data["bands"])),
        *([Section("Categories of the review", "", ("category", "attempts"), _counted(data["categories"]))]
          if data["categories"] else []),
        Section("Fallback to the next best honest kernel", "Kernels of a problem in the order of their claims, to the "
                "first that is right and accepted.", *_fallback(data["fallback"])),
        *([Section("Held-out workloads", "", ("verdict", "kernels"), _counted(data["held_out"]))]
          if data["held_out"] else []),
        Section("Kernels", "", *_kernels(rows)),
    ]  # fmt: skip


def best_section(figures: dict[str, dict[str, Any]]) -> Section:
    """Return the section of the best over several runs."""
    return Section("Best of all runs", "The best solution of each problem over all runs.", *_figures(figures))


def render(parts: Sequence[Section], form: str) -> str:
    """Return sections as text; ``form`` is terminal or markdown."""
    blocks = []
    for part in parts:
        above = tables.heading(part.title, form, 2), tables.paragraph(part.note, form)
        shown = *above, tables.table(part.headers, part.cells, form)
        blocks.append("\n\n".join(filter(None, shown)))
    return "\n\n".join(blocks) + "\n"


def _problems(data: dict[str, Any]) -> str:
    return (
        f"Figures below are over the {data['problems']} problem(s) with a result; "
        f"{data['problems_without_a_result']} have none."
    )


def _inflation(found: dict[str, dict[str, Any]]):
    total = found["total"]
    headers = ("kernels", "correct", "unsettled", "compared", "claimed", "settled", "inflation", "claimed, all",
               "settled, all", "inflation over all")  # fmt: skip
    return headers, [_inflation_cells(total)]


def _traits(found: dict[str, dict[str, Any]]):
    headers = ("trait", "kernels", "correct", "unsettled", "compared", "claimed", "settled", "inflation",
               "claimed, all", "settled, all", "inflation over all")  # fmt: skip
    return headers, [(name, *_inflation_cells(of)) for name, of in found.items() if name != "total"]


def _inflation_cells(of: dict[str, Any]) -> tuple[str, ...]:
    counts = tuple(str(of[key]) for key in ("kernels", "correct", "unsettled", "compared"))
    figures = ("claimed", "settled", "inflation", "claimed_over_all", "settled_over_all", "inflation_over_all")
    return (*counts, *(_times(of[key]) for key in figures))


def _figures(found: dict[str, dict[str, Any]]):
    headers = ("filtering", "solved", "fast_1", "geo. mean", "fallback geo. mean", "median")
    cells = [
        (name, str(of["solved"]), f"{of['settled_fast_1']:.3f}", _times(of["geometric_mean"]),
         _times(of["fallback_geometric_mean"]), _times(of["median"]))
        for name, of in found.items()
    ]  # fmt: skip
    return headers, cells


def _curves(data: dict[str, Any]):
    headers = ("curve", *(f"r = {r:g}" for r in _RATIOS))
    cells = [(name, *(f"{_share_at(points, r):.3f}" for r in _RATIOS)) for name, points in data["curves"].items()]
    return headers, cells


def _share_at(points: Sequence[tuple[float, float]], r: float) -> float:
    """Return the share at ``r`` or beyond: a curve keeps the value of one point up to and with the next."""
    return next((share for at, share in reversed(points) if at < r), 0.0)


def _fallback(found: dict[str, Any]):
    headers = ("examined", "problems accepted", "after a fallback", "problems without", "claimed", "settled")
    counts = (str(found[key]) for key in ("examined", "accepted", "fallen_back", "without"))
    return headers, [(*counts, _times(found["claimed"]), _times(found["settled"]))]


def _kernels(rows: Sequence[Row]):
    headers = ("problem", "claimed", "status", "rule", "settled", "inflation", "label", "traits")
    cells = [
        (
            row.claim.problem,
            _times(row.claim.speedup),
            row.status,
            (row.result.rule or "") if row.result else "",
            settled.speedup_text(row.result) if row.result else "",
            f"{row.inflation:.2f}" if row.inflation else "",
            row.label.band if row.label.band != "unreviewed" else "",
            ", ".join(row.traits),
        )
        for row in rows
    ]
    return headers, cells


def _counted(found: dict[str, int]) -> list[tuple[str, str]]:
    return [*((name, str(count)) for name, count in found.items()), ("total", str(sum(found.values())))]


def _times(figure: float | None) -> str:
    return "-" if figure is None else f"{figure:.2f}x"
