"""Outcome bands and filtered figures as tables, where labels leave something out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kernelbench.metrics import outcomes
from kernelbench.views import tables

_NOTE = (
    "Filterings leave out what is library-only, gaming by a review, or below the SOL ceiling; the best solution of a "
    "problem is then the best of the others."
)


def outcome_tables(runs: Iterable[tuple[str, dict[str, Any]]], form: str) -> str:
    """Return bands and filtered figures of runs, from (name, ``bands`` and ``filterings``).

    Labels tell nothing, and the text is '', where there is none, and where all attempts are library-only, as PyTorch
    solutions on a CPU are.
    """
    shown = [(name, data) for name, data in runs if _tells(data["bands"])]
    if not shown:
        return ""
    bands = tables.table(
        ("run", *(band.replace("_", " ") for band in (*outcomes.BANDS, outcomes.UNREVIEWED))),
        [(name, *map(str, data["bands"].values())) for name, data in shown],
        form,
    )
    figures = tables.table(
        ("run", "filtering", "solved", "fast_1", "geo. mean"),
        [
            (name, filtering, str(of["solved"]), f"{of['settled_fast_1']:.3f}",
             f"{of['geometric_mean']:.2f}x" if of["geometric_mean"] else "-")
            for name, data in shown
            for filtering, of in data["filterings"].items()
        ],
        form,
    )  # fmt: skip
    return "\n\n".join((bands, figures, _NOTE))


def _tells(bands: dict[str, int]) -> bool:
    present = {band for band, count in bands.items() if count}
    return present not in (set(), {outcomes.UNREVIEWED}, {outcomes.LIBRARY_ONLY})
