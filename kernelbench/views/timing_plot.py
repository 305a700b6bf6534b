"""A picture of one solution's timing: how its samples are distributed, and over time. Needs matplotlib (``report``)."""

from __future__ import annotations

from pathlib import Path

from harness.result import Result
from harness.timing.statistics import round_means_ms
from kernelbench import escaping
from kernelbench.views import plotting
from kernelbench.views.plotting import PictureError
from kernelbench.views.timing_text import series


def draw(result: Result, path: Path) -> None:
    """Write the picture; its format is that of the suffix of ``path``. Raises PictureError."""
    pyplot = plotting.pyplot("a picture")
    timings = series(result)
    if not timings:
        raise PictureError(f"{result.solution['name']} was not timed ({result.status}): there is nothing to draw")
    figure, (shares, course) = pyplot.subplots(1, 2, figsize=(11, 4.5), layout="constrained", width_ratios=(2, 3))
    for name, timing in timings.items():
        calls, each = timing["samples_ms"], timing.get("calls_a_round", 1)
        (line,) = course.plot([i / each for i in range(len(calls))], calls, ".", markersize=3, alpha=0.4)
        means = round_means_ms(timing)
        label = f"{escaping.picture(name)}: {timing['median_ms']:.4g} ms"
        course.step(range(len(means) + 1), [*means, means[-1]], where="post", color=line.get_color(), label=label)
        course.axhline(timing["median_ms"], color=line.get_color(), linewidth=0.8, linestyle="--")
        least = max(calls) * 1e-6  # narrower bins than the numbers can tell apart are an error
        of = min(calls) - least, max(calls) + least
        shares.hist(calls, bins=40, range=of, histtype="stepfilled", alpha=0.5, color=line.get_color(), label=label)
    shares.set_xlabel("time of a call, ms")
    shares.set_ylabel("calls")
    course.set_xlabel("round (dots: calls; steps: means of rounds; dashed: their median)")
    course.set_ylabel("ms")
    course.legend()
    of = f"{result.problem} {result.problem_name}", result.solution["name"], result.workload["name"]
    figure.suptitle(", ".join(map(escaping.picture, [*of, result.device.get("name", "")])))
    plotting.save(figure, path)
