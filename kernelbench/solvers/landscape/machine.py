"""The landscape as a backend: it times a kernel by what its source says, with the noise of a measurement."""

from __future__ import annotations

import dataclasses
import hashlib
import math
import random
from concurrent.futures import Future
from typing import Any

from harness.result import Result, Status
from kernelbench.metrics import settled
from kernelbench.solvers.backend.interface import Bounds, Profile, Trial, Work
from kernelbench.solvers.landscape import parameters as p
from kernelbench.solvers.landscape import terrain
from kernelbench.solvers.landscape.terrain import Problem, Spec

DEVICE = {"type": "cuda", "name": "landscape"}
_MESSAGES = {
    "build_error": "error: expected ';' before '}' token",
    "runtime_error": "CUDA error: an illegal memory access was encountered",
    "wrong_value": "output differs from the reference: largest relative error 0.37",
}
_NOT_FROM_HERE = "it is no kernel of the landscape: its source has no line '# landscape {...}'"
_WORKLOAD = {"name": "landscape", "sizes": {}, "flops": None, "bytes": None}


class LandscapeProblem:
    """Facts about a problem: the ``ProblemFacts`` of the landscape."""

    def __init__(self, problem: Problem):
        self.problem = problem
        self.id, self.name = problem.id, f"landscape_{problem.id.replace('/', '_')}"
        self.source = (
            f'"""Problem {problem.id} of the landscape."""\nimport torch\n\n\nclass Model(torch.nn.Module):\n    pass\n'
        )
        self.precision = "fp32"
        self.sizes: dict[str, Any] = {}
        self.workload_names = [_WORKLOAD["name"]]
        self.limits = None

    def bounds(self, conditions: dict[str, Any]) -> Bounds:
        """Return the bounds; they are those that records have."""
        return Bounds(
            self.problem.sol_ms, self.problem.sol_fp16_ms, self.problem.sol_fp16_ms, self.problem.bottleneck,
            self.problem.bottleneck, clock="given",
        )  # fmt: skip

    def sol_report(self, conditions: dict[str, Any]) -> str:
        """Return the bounds as text."""
        of = self.problem
        return (
            f"t_SOL {of.sol_ms:.4g} ms (TF32), {of.sol_fp16_ms:.4g} ms (FP16); "
            f"at the speed of light the bottleneck is {of.bottleneck}."
        )


class LandscapeBackend:
    """The ``Backend`` of the landscape of ``seed``; ``repeat`` is for other noise in the same landscape."""

    device = DEVICE

    def __init__(self, seed: int, repeat: int = 0):
        self._seed, self._repeat = seed, repeat

    def evaluate(self, work: Work) -> Future[list[Result]]:
        """Return a future that is done."""
        done: Future = Future()
        done.set_result([self._result(work)])
        return done

    def build(self, work: Work) -> Trial:
        """Build only: wrong values and crashes are not seen."""
        result = self._result(work)
        return Trial("build_error", result.message) if result.status is Status.BUILD_ERROR else Trial("ok")

    def check(self, work: Work) -> Trial:
        """Build, run and compare."""
        result = self._result(work)
        return Trial(result.status.value, result.message)

    def profile(self, work: Work, result: Result) -> Profile:
        """Return the counters of a kernel; none of one that failed."""
        spec = terrain.spec_in(work.source)
        if spec is None or spec.fault:
            return Profile("landscape", note="only a correct candidate is profiled")
        read = terrain.profile(self._problem(work.problem), spec)
        return Profile(
            "landscape", read["sm"], read["dram"], read["l2"], read["occupancy"], read["registers"],
            read["shared_bytes"], read["block"],
        )  # fmt: skip

    def baseline(self, problem: str) -> dict[str, Any]:
        """Return the time to beat."""
        return {"name": "eager", "median_ms": self._problem(problem).baseline_ms, "error": None}

    def _problem(self, number: str) -> Problem:
        return terrain.problem(self._seed, number)

    def _result(self, work: Work) -> Result:
        digest = hashlib.sha256(work.source.encode(errors="surrogateescape")).hexdigest()
        solution = {
            "name": f"level{work.problem}_s{work.sample}.{work.kind}", "sample": work.sample, "kind": work.kind,
            "language": "landscape", "sha256": digest,
        }  # fmt: skip
        name = f"landscape_{work.problem.replace('/', '_')}"
        result = Result(work.problem, name, dict(_WORKLOAD), solution, Status.OK, device=dict(DEVICE))
        if work.failure is not None:
            return dataclasses.replace(result, status=work.failure.status, message=work.failure.message)
        spec = terrain.spec_in(work.source)
        if spec is None:
            return dataclasses.replace(result, status=Status.LOAD_ERROR, message=_NOT_FROM_HERE)
        if spec.fault:
            return dataclasses.replace(result, status=Status(spec.fault), message=_MESSAGES[spec.fault])
        rng = random.Random(f"measurement {self._seed} {self._repeat} {work.problem} {work.sample} {digest}")
        return _timed(result, self._problem(work.problem), spec, rng)


def _timed(result: Result, problem: Problem, spec: Spec, rng: random.Random) -> Result:
    """Return the result with its time, its speedup and what that may claim."""
    true_ms = problem.time_ms(spec.left) * spec.drag
    speedup = problem.baseline_ms / true_ms * math.exp(rng.gauss(0, p.LOG_SD))
    spread = math.exp(1.96 * p.LOG_SD)
    low, high = speedup / spread, speedup * spread
    verdict = settled.FASTER if low > 1 else settled.SLOWER if high < 1 else settled.TIE
    if rng.random() < p.UNSTABLE:
        verdict = settled.UNSTABLE
    ms = problem.baseline_ms / speedup
    eager = {"median_ms": problem.baseline_ms, "speedup": speedup, "interval": [low, high], "verdict": verdict}
    sol = {
        "t_sol_ms": problem.sol_ms, "t_sol_fp16_ms": problem.sol_fp16_ms, "t_floor_ms": problem.sol_fp16_ms,
        "g": ms / problem.sol_ms, "percent_of_sol": 100 * problem.sol_ms / ms, "bottleneck": problem.bottleneck,
        "peak_type": "landscape",
        "compute_share": problem.ideal_ms[0] / ms, "bandwidth_share": problem.ideal_ms[1] / ms,
    }  # fmt: skip
    return dataclasses.replace(result, timing={"median_ms": ms}, baselines={"eager": eager}, speedup=speedup, sol=sol)
