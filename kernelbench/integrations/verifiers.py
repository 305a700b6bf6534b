"""verifiers 0.4 and later: a taskset of problems, whose reward is the judge's.

    vf-eval kernelbench --env.taskset.problems level1 --env.agent.harness.id null

The package ``kernelbench`` exports the class, which is how verifiers finds a taskset. For versions before 0.2 see
``kernelbench.integrations.verifiers_environment``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import verifiers.v1 as vf

from kernelbench.integrations import tasks


class KernelTaskConfig(vf.TaskConfig):
    """Conditions of the evaluation, as of ``kernelbench.evaluate``."""

    device: str | None = None
    workload: str | None = None
    precision: str = "fp32"
    timeout_s: float = 120.0
    track: str | None = None


class KernelTasksetConfig(vf.TasksetConfig):
    """``problems`` is a selector as of ``kb problems list``; ``kind`` is ``py``, ``cu`` or ``cpp``."""

    problems: str = "smoke"
    kind: str = "py"
    task: KernelTaskConfig = KernelTaskConfig()


class KernelData(vf.TaskData):
    problem: str
    kind: str


class KernelTask(vf.Task[KernelData, vf.State, KernelTaskConfig]):
    """One problem."""

    @vf.reward
    async def kernel(self, trace: vf.Trace) -> float:
        """Return the reward of the last solution in the model's answer, and record its metrics.

        Raises EvaluationError where the machine is at fault: the trace then has an error and no reward.
        """
        conditions = self.config.model_dump(include={"device", "workload", "precision", "timeout_s", "track"})
        grade = await asyncio.to_thread(
            tasks.grade_answer, self.data.problem, trace.last_reply, self.data.kind, **conditions
        )
        trace.record_metrics(grade.metrics())
        trace.info["kernelbench"] = grade.to_json()
        return grade.value


class KernelTaskset(vf.Taskset[KernelTask, KernelTasksetConfig]):
    """The problems that the configuration selects."""

    def load(self) -> Iterator[KernelTask]:
        """Yield a task for each problem, in the order of their ids."""
        kind, task = self.config.kind, self.config.task
        for file in tasks.problems(self.config.problems):
            problem = str(file.id)
            prompt = tasks.instruction(problem, kind, task.device, task.workload)
            yield KernelTask(KernelData(id=problem, name=file.name, prompt=prompt, problem=problem, kind=kind), task)
