"""Solves in this process."""

import dataclasses
from pathlib import Path

import pytest
from candidates import STRATEGIES
from quick import QUICK_CV

from kernelbench.endpoint import Endpoint
from kernelbench.evaluation.executor import Options
from kernelbench.evaluation.local_executor import Pipeline
from kernelbench.solvers.orchestrator import solve_on
from kernelbench.solvers.plan import Plan
from kernelbench.solvers.script import Script


@pytest.fixture(scope="session")
def pipeline():
    """Devices and builds for all solves of this process: a judge takes seconds to start."""
    pipeline = Pipeline(Options(device="cpu", timeout_s=20, jobs=1, cv_target=QUICK_CV))
    yield pipeline
    pipeline.kill()


@pytest.fixture
def solved(tmp_path, pipeline):
    """Run a solver on 1/19 (or others) on the CPU."""

    def solved(solver, served=None, *, budget=1, selector="1/19", out="run", resume=False, prices=None, stream=False,
               workload=None, problem_dir=None, **plan):  # fmt: skip
        endpoint = Endpoint("model", served.base_url, prices=prices, stream=stream) if served else None
        path = solver if isinstance(solver, Path) else STRATEGIES / f"{solver}.py"
        made = Plan(Script(path), budget, endpoint, **plan)
        options, pipeline.options = pipeline.options, dataclasses.replace(pipeline.options, workload=workload)
        try:
            return solve_on(pipeline, made, selector, tmp_path / out, resume=resume, problem_dir=problem_dir)
        finally:
            pipeline.options = options

    return solved
