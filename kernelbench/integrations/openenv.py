"""OpenEnv: an environment in which each step is one attempt at a problem, and the server that offers it.

    uvicorn kernelbench.integrations.openenv:app --port 8000     # KERNELBENCH_PROBLEMS=level1 selects problems

A client resets to a problem, reads the task from the observation, and steps with sources until it has used up its
attempts. Candidates run in kernelbench's sandbox, not in the server's process.
"""

from __future__ import annotations

import os
import random
import uuid
from typing import Any

from openenv.core.env_server import Action, Environment, Observation, State, create_app
from pydantic import Field

from kernelbench import EvaluationError
from kernelbench.integrations import tasks

ATTEMPTS = 5  # steps of an episode
SESSIONS = 16  # clients at once; what is timed waits for its turn
UNSCORED = "unscored"


class KernelAction(Action):
    """A solution: its ``source`` as the content of a file of ``kind`` ``py``, ``cu`` or ``cpp``."""

    source: str
    kind: str = "py"


class KernelObservation(Observation):
    """The task, and what became of the last attempt. ``reward`` is None where there was none or it is unscored."""

    problem: str = ""
    task: str = ""
    status: str = ""
    feedback: str = ""
    metrics: dict[str, float] = Field(default_factory=dict)
    attempts_left: int = 0


class KernelState(State):
    problem: str = ""
    best: float = 0.0


class KernelEnvironment(Environment[KernelAction, KernelObservation, KernelState]):
    """``selector`` says which problems there are; ``conditions`` are those of ``tasks.grade``."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, selector: str = "smoke", attempts: int = ATTEMPTS, **conditions: Any):
        super().__init__()
        self._problems = [str(file.id) for file in tasks.problems(selector)]
        self._attempts, self._conditions = attempts, conditions
        self._state = KernelState()

    def reset(
        self, seed: int | None = None, episode_id: str | None = None, problem: str | None = None, kind: str = "py",
        **_: Any,
    ) -> KernelObservation:  # fmt: skip
        """Begin an episode at ``problem``, or at one that ``seed`` draws from the selection."""
        problem = problem or random.Random(seed).choice(self._problems)
        if problem not in self._problems:
            raise ValueError(f"problem '{problem}' is not among those of this server: {', '.join(self._problems)}")
        task = tasks.instruction(problem, kind, self._conditions.get("device"), self._conditions.get("workload"))
        self._state = KernelState(episode_id=episode_id or str(uuid.uuid4()), problem=problem)
        return KernelObservation(problem=problem, task=task, attempts_left=self._attempts)

    def step(self, action: KernelAction, timeout_s: float | None = None, **_: Any) -> KernelObservation:
        """Judge one attempt. A fault of the machine has no reward and uses up no attempt."""
        problem = self._state.problem
        if not problem:
            raise ValueError("call reset first: it chooses the problem")
        if not self._left():
            raise ValueError(f"the episode is over: its {self._attempts} attempts are used up; call reset")
        try:
            grade = self._grade(problem, action)
        except EvaluationError as error:
            return KernelObservation(
                problem=problem, status=UNSCORED, feedback=str(error), attempts_left=self._left(), reward=None
            )
        self._state.step_count += 1
        self._state.best = max(self._state.best, grade.value)
        return KernelObservation(
            problem=problem, status=grade.label, feedback=grade.feedback, metrics=grade.metrics(),
            attempts_left=self._left(), reward=grade.value, done=self._left() == 0,
        )  # fmt: skip

    def _grade(self, problem: str, action: KernelAction) -> tasks.Grade:
        from harness import device as devices  # imports torch

        device = devices.select(self._conditions.get("device")).type
        kinds = tasks.KINDS_ON[device]
        if action.kind not in kinds:  # the agent chose it: it uses up an attempt
            return tasks.Grade(0.0, tasks.NO_CODE, f"kind must be one of {', '.join(kinds)}, not {action.kind!r:.80}")
        # said openly: a service may have another one, which takes other kinds than the task says
        conditions = {**self._conditions, "device": self._conditions.get("device") or device}
        return tasks.grade(problem, action.source, action.kind, **conditions)

    def _left(self) -> int:
        return max(0, self._attempts - self._state.step_count)

    @property
    def state(self) -> KernelState:
        """Return the episode: its problem, the number of steps and the best reward so far."""
        return self._state


def environment() -> KernelEnvironment:
    """Return an environment as $KERNELBENCH_PROBLEMS and $KERNELBENCH_DEVICE say."""
    selector = os.environ.get("KERNELBENCH_PROBLEMS", "smoke")
    return KernelEnvironment(selector, device=os.environ.get("KERNELBENCH_DEVICE"))


app = create_app(
    environment, KernelAction, KernelObservation, env_name="kernelbench", max_concurrent_envs=SESSIONS
)
