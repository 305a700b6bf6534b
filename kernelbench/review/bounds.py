"""Operator table and bounds of a result's problem, for a reviewer: what the work is, and what it takes at least."""

from __future__ import annotations

from typing import Any

from harness.problem.module import ProblemError, load_problem
from harness.result import Result
from kernelbench import suite
from kernelbench.metrics.workloads import CombinedResult
from kernelbench.run import Run


def bounds_of(run: Run, result: Result) -> dict[str, Any]:
    """Return the speed-of-light report of the workload, on the result's device where it is in the table.

    Of a result over several workloads it is one each, by name, under ``workloads``. Where it cannot be made the only
    field is ``unavailable``, with the reason: a review goes on without it. Problems of another folder than the suite's
    are not loaded: it is the run that names it, which may be somebody else's.
    """
    if run.config.get("problem_dir"):
        return {"unavailable": "the problem is not the suite's, and a review runs nothing that a run names"}
    if isinstance(result, CombinedResult):
        return {"workloads": {part.workload.get("name", ""): _of_workload(part) for part in result.parts}}
    return _of_workload(result)


def _of_workload(result: Result) -> dict[str, Any]:
    from harness.problem.inputs import DTYPES
    from harness.sol.bounds import analyse
    from harness.sol.clock import choose
    from harness.sol.hardware import limits_of_product
    from harness.sol.report import to_json

    try:
        problem = load_problem(suite.find(result.problem)[0])
        if result.problem_sha256 not in ("", problem.sha256):
            return {"unavailable": "the suite's module is of another text than the result"}
        analysis = analyse(problem.workload(result.workload.get("name", "")), DTYPES[result.precision])
        if limits := limits_of_product(result.device.get("name", "")):
            return to_json(analysis, limits, choose(limits, result.conditions))
    except (suite.SelectorError, ProblemError, OSError) as error:
        return {"unavailable": str(error)}
    except Exception as error:  # a table is not worth a lost review
        return {"unavailable": f"the analysis failed: {type(error).__name__}: {error}"}
    operators = [vars(row) for row in analysis.rows]
    return {"total_flops": analysis.direct.flops, "total_bytes": analysis.direct.bytes, "operators": operators}
