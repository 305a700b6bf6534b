"""T, Triage: rank hypotheses by their return on investment, which is more ambitious the larger the gap is."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from kernelbench.solvers.mantis.artefacts import Analysis, Hypothesis, keep

if TYPE_CHECKING:
    from kernelbench.solvers.mantis.settings import MantisSettings
    from kernelbench.solvers.task import Task

_AMBITION_FROM = 5.0  # gap g from which on larger speedups weigh more (page 7, section 4.2)


def roi(speedup: float, implementation_risk: float, performance_risk: float, gap: float | None) -> float:
    """Return ROI(h) = S^(1 + max(0, log10(g / 5))) / (R_impl * R_perf); an unknown gap counts as a small one.

    References
    ----------
    The paper on muCUTLASS and speed-of-light guidance, section 4.2, page 7.
    """
    exponent = 1.0 + (max(0.0, math.log10(gap / _AMBITION_FROM)) if gap else 0.0)
    return speedup**exponent / (implementation_risk * performance_risk)


def run(
    task: Task, settings: MantisSettings, iteration: int, hypotheses: list[Hypothesis], analysis: Analysis | None
) -> list[Hypothesis]:
    """Return the hypotheses to implement, best first; without triage the first ones in the model's order."""
    if settings.has("triage"):
        gap = analysis.gap if analysis else None
        rated = [
            replace(one, roi=roi(one.expected_speedup, one.implementation_risk, one.performance_risk, gap))
            for one in hypotheses
        ]
        hypotheses = sorted(rated, key=lambda one: -one.roi)
    chosen = hypotheses[: settings.hypotheses]
    keep(task, iteration, "4_triage", chosen)
    return chosen
