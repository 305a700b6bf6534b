"""verifiers before 0.2: the function ``load_environment`` that its environments define.

    vf-eval kernelbench -a '{"problems": "level1"}'

The package ``kernelbench`` exports the function, which is how verifiers finds it.
"""

from __future__ import annotations

import asyncio
from typing import Any

import verifiers as vf
from datasets import Dataset

from kernelbench import EvaluationError
from kernelbench.integrations import tasks


def load_environment(problems: str = "smoke", kind: str = "py", **conditions: Any) -> vf.Environment:
    """Return a single-turn environment over ``problems``; ``conditions`` are those of ``tasks.grade``.

    The reward is that of ``kernelbench.reward``. Where the machine is at fault it is NaN, and ``state`` has
    ``kernelbench_unscored`` with the reason: leave such rollouts out.
    """
    rows = [
        {
            "question": tasks.instruction(str(file.id), kind, conditions.get("device"), conditions.get("workload")),
            "answer": "",
            "info": {"problem": str(file.id), "kind": kind},
        }
        for file in tasks.problems(problems)
    ]

    async def kernel(completion: Any, info: dict[str, Any], state: dict[str, Any]) -> float:
        text = completion if isinstance(completion, str) else completion[-1]["content"]
        try:
            grade = await asyncio.to_thread(tasks.grade_answer, info["problem"], text, info["kind"], **conditions)
        except EvaluationError as error:
            state["kernelbench_unscored"] = str(error)
            return float("nan")
        state["kernelbench"] = grade.to_json()
        return grade.value

    def correct(state: dict[str, Any]) -> float:
        return float(state.get("kernelbench", {}).get("label") == "ok")

    rubric = vf.Rubric(funcs=[kernel, correct], weights=[1.0, 0.0])
    return vf.SingleTurnEnv(dataset=Dataset.from_list(rows), rubric=rubric)
