"""Overhead of `kb solve`: many trajectories in flight, a slow model, and how long devices idle.

    python scripts/bench/solve_overhead.py --trajectories 16 --latency 2 --turns 3

A stand-in endpoint answers after ``--latency`` seconds. Once the first answers are there, a device should always
have a candidate to evaluate. Its overhead is the share of that time, until the last result, in which no judge worked
on one; where trajectories are too few to keep a device busy, the wait for the model is in it, and the script says so.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from stand_in import Answer, StandIn  # noqa: E402

from kernelbench.endpoint import Endpoint  # noqa: E402
from kernelbench.evaluation.executor import Options  # noqa: E402
from kernelbench.evaluation.local_executor import Pipeline  # noqa: E402
from kernelbench.solvers.orchestrator import solve_on  # noqa: E402
from kernelbench.solvers.plan import Plan, Watcher  # noqa: E402
from kernelbench.solvers.script import Script  # noqa: E402

_ANSWER = """```python
import torch
class ModelNew(torch.nn.Module):
    def forward(self, x): return {expression}  # {number}
```"""


class Stopwatch(Watcher):
    """Moments at which candidates were on a device, from the orchestrator's side."""

    def __init__(self) -> None:
        self.begun: dict = {}
        self.spans: list[tuple[float, float]] = []

    def moved(self, key, state: str) -> None:
        if state == "judging":
            self.begun.setdefault(key, time.monotonic())
        elif state == "" and key in self.begun:
            self.spans.append((self.begun.pop(key), time.monotonic()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--trajectories", type=int, default=16)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--latency", type=float, default=2.0, help="seconds of the model")
    parser.add_argument("--device", help="as of kb eval")
    parser.add_argument("--expression", default="x * 0.5 + x.abs() * 0.5", help="what candidates compute; ReLU passes")
    arguments = parser.parse_args()

    def answer(request, number):
        return Answer(_ANSWER.format(expression=arguments.expression, number=number), after_s=arguments.latency)

    root = Path(tempfile.mkdtemp(prefix="kb-bench-"))
    problems = _same_problem(root / "problems", arguments.trajectories)
    solver = Script(Path(__file__).resolve().parents[1] / "solvers" / "refine.py")
    pipeline, watch = Pipeline(Options(device=arguments.device, timeout_s=30, track="open")), Stopwatch()
    with StandIn(answer) as server:
        endpoint = Endpoint("stand-in", server.base_url, at_once=arguments.trajectories)
        plan = Plan(solver, arguments.turns, endpoint, at_once=arguments.trajectories)
        before = resource.getrusage(resource.RUSAGE_SELF)
        begin = time.monotonic()
        outcome = solve_on(pipeline, plan, "all", root / "run", problem_dir=problems, watcher=watch)
        wall_s = time.monotonic() - begin
        after = resource.getrusage(resource.RUSAGE_SELF)
    pipeline.close()
    _report(outcome, watch, wall_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, arguments)


def _same_problem(folder: Path, count: int) -> Path:
    """Return so many problems that are all ReLU, so that evaluations take alike."""
    source = Path(__file__).resolve().parents[2] / "problems" / "level1" / "019_relu.py"
    (folder / "level1").mkdir(parents=True)
    for number in range(1, count + 1):
        (folder / "level1" / f"{number:03}_relu.py").write_text(source.read_text())
    return folder


def _report(outcome, watch: Stopwatch, wall_s: float, cpu_s: float, arguments) -> None:
    results, spans = outcome.run.results, watch.spans
    window_s = max(end for _, end in spans) - min(begin for begin, _ in spans)
    busy_s = sum(end - begin for begin, end in spans)
    inside_s = sum(result.seconds for result in results)  # by the judge's own clock
    one_s = inside_s / len(results)
    between, outside = 1 - busy_s / window_s, 1 - inside_s / window_s
    statuses = ", ".join(sorted({result.status.value for result in results}))
    print(f"{len(results)} evaluations ({statuses}) on {outcome.device['name']}")
    print(f"wall {wall_s:.1f} s; from the first evaluation's begin to the last one's end {window_s:.1f} s")
    print(f"a judge had a candidate for {busy_s:.1f} s of it, and worked on it for {inside_s:.1f} s")
    print(f"an evaluation takes {one_s:.2f} s")
    print(f"overhead: {between:.1%} between evaluations, {outside:.1%} with what the judge does around them")
    print(f"orchestrator's CPU time: {cpu_s:.1f} s, with the stand-in endpoint and the tracing of problems in it")
    if arguments.trajectories * one_s < arguments.latency + one_s:
        print("too few trajectories to keep a device busy: the wait for the model is in these figures")


if __name__ == "__main__":
    main()
