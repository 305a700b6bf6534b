"""A backend without a device: times follow from the source, so that two runs can be compared to the byte.

As a program it forks one run of MANTIS on two problems for each line ``OUT BASE_URL`` that it reads. It prints the
process number of the run, which may be killed, and then its exit status.
"""

import hashlib
import json
import os
import sys
import traceback
from concurrent.futures import Future
from pathlib import Path

from candidates import STRATEGIES

from harness.result import Result, Status
from kernelbench.endpoint import Endpoint
from kernelbench.run_files.log import append_line, whole_lines
from kernelbench.solvers import session
from kernelbench.solvers.backend.interface import Bounds, Profile, Trial
from kernelbench.solvers.log.journal import Journal
from kernelbench.solvers.plan import Plan
from kernelbench.solvers.script import Script

BASELINE_MS, T_SOL_MS = 4.0, 0.25


class Facts:
    precision, sizes, workload_names, limits = "fp32", {"n": 1024}, ["full"], None

    def __init__(self, number):
        self.id, self.name, self.source = f"1/{number}", f"simulated_{number}", f"# problem {number}\nclass Model: ..."

    def bounds(self, conditions):
        return Bounds(T_SOL_MS, T_SOL_MS / 2, T_SOL_MS / 4, "memory", "memory", operators=[{"name": "relu"}])

    def sol_report(self, conditions):
        return f"t_SOL is {T_SOL_MS} ms"


class SimulatedBackend:
    """``profiles`` counts readings, which no two runs may have of the same source."""

    def __init__(self):
        self.device = {"type": "cuda", "name": "Simulated"}
        self.evaluated = self.profiles = 0

    def evaluate(self, work):
        self.evaluated += 1
        done = Future()
        done.set_result([result_of(work)])
        return done

    def build(self, work):
        return Trial("ok")

    check = build

    def profile(self, work, result):
        self.profiles += 1
        return Profile("ncu", sm_percent=50.0 * result.timing["median_ms"], kernels=[{"name": "k", "ms": 1.0}])

    def baseline(self, problem):
        return {"name": "eager", "median_ms": BASELINE_MS, "error": None}


def result_of(work):
    digest = hashlib.sha256(work.source.encode()).hexdigest()
    solution = {
        "name": f"{work.sample}.py", "sample": work.sample, "kind": work.kind, "language": "own", "sha256": digest,
    }  # fmt: skip
    if int(digest[0], 16) < 4 or work.failure:
        return Result(work.problem, "simulated", {"name": "full"}, solution, Status.WRONG_VALUE, "it is wrong")
    median_ms = 0.5 + int(digest[:4], 16) / 0x10000 * 5
    speedup = BASELINE_MS / median_ms
    baseline = {"median_ms": BASELINE_MS, "speedup": speedup, "verdict": "faster" if speedup > 1 else "slower"}
    baseline["interval"] = [0.99 * speedup, 1.01 * speedup]
    sol = {"t_sol_ms": T_SOL_MS, "t_sol_fp16_ms": T_SOL_MS / 2, "g": median_ms / T_SOL_MS}
    return Result(
        work.problem, "simulated", {"name": "full"}, solution, Status.OK, timing={"median_ms": median_ms},
        baselines={"eager": baseline}, speedup=speedup, sol=sol, device={"type": "cuda", "name": "Simulated"},
    )  # fmt: skip


def run_on_disk(out, base_url):
    """One life of a run in ``out``; returns the backend."""
    out.mkdir(exist_ok=True)
    log = out / "results.jsonl"
    log.touch()
    results = [Result.from_json(json.loads(line)) for line in whole_lines(log)[0]]

    def keep(work, made):
        for result in made:
            append_line(log, result.to_json())

    settings = {"iterations": "2", "attempts": "2"}
    plan = Plan(
        Script(STRATEGIES / "mantis.py"), 8, Endpoint("m", base_url), settings=settings, at_once=1, schedule="breadth"
    )
    backend = SimulatedBackend()
    store = session.Store(Journal(out), results, keep, out)
    ended = session.run(plan, [Facts(1), Facts(2)], backend, store)
    assert not ended.failures, ended.failures
    return backend


def serve():
    """Fork a run for each line: everything is imported already, so that a life takes no seconds to start."""
    import openai  # noqa: F401

    for line in sys.stdin:
        out, base_url = line.split()
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                run_on_disk(Path(out), base_url)
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        print(pid, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


if __name__ == "__main__":
    serve()
