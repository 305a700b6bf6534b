"""M, Measure: the best kernel's time and profile; PyTorch's time before there is one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelbench.metrics import fast_p
from kernelbench.solvers.mantis.artefacts import Measurement, keep
from kernelbench.solvers.prompting import profile_text

if TYPE_CHECKING:
    from kernelbench.solvers.task import Task


def run(task: Task, iteration: int) -> Measurement:
    """Profile the best correct attempt so far."""
    best, baseline_ms = task.best, task.baseline["median_ms"]
    if best is None:
        measured = Measurement(None, None, baseline_ms, "There is no correct kernel to profile yet.")
    else:
        text = profile_text.markdown(task.profile(best))
        measured = Measurement(best.solution["sample"], fast_p.typical_ms(best.timing), baseline_ms, text)
    keep(task, iteration, "1_measure", measured)
    return measured
