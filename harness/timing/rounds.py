"""One round: draw fresh inputs for each seed, call the model on each, time the calls.

Candidate and reference both run their rounds through this function, in their
own processes, so that nothing but the model differs between them.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from harness.problem.distributions import TIMED, rare
from harness.problem.inputs import build_model, call, draw_inputs, fresh_seeds, seed_generators
from harness.problem.module import Workload
from harness.tensors.outputs import as_tensors, flatten, structure_of
from harness.tensors.strides import is_dense
from harness.timing import Round
from harness.timing.cupti import breakdown


@dataclass(frozen=True)
class InputCase:
    """Input distribution and weights of a call."""

    draw: str = "published"
    weights: str = "initial"

    def __str__(self) -> str:
        return f"{self.draw} inputs, {self.weights} weights"


@dataclass(frozen=True)
class RunConfig:
    """Configuration of a round: the same on both sides of the process border."""

    workload: Workload
    device: torch.device
    dtype: torch.dtype
    timed: InputCase = InputCase(TIMED)
    place: Callable[[list], list] | None = None  # where inputs are put for the model, outside of its time

    @property
    def rare(self) -> InputCase | None:
        """Return what is timed, with rare large elements; None where only published inputs are valid."""
        return None if self.timed == InputCase() else InputCase(rare(self.timed.draw), self.timed.weights)

    def draw(self, seeds: list[int]) -> list[list]:
        """The inputs of each call that is timed."""
        return [self.draw_one(seed) for seed in seeds]

    def draw_one(self, seed: int, draw: str | None = None) -> list:
        """The inputs of one call: those that are timed, or drawn as one of ``hardened.DRAWS``."""
        inputs = draw_inputs(self.workload, seed, self.device, self.dtype, draw or self.timed.draw)
        return self.place(inputs) if self.place else inputs

    def build(self, model_class: type, seed: int, weights: str = "initial"):
        return build_model(model_class, self.workload, seed, self.device, self.dtype, weights)


def outputs_of(model, setting: RunConfig, inputs: list, seed: int) -> list[torch.Tensor]:
    """The leaves of one call's output; the call may overwrite its inputs."""
    seed_generators(seed, setting.device)
    return as_tensors(flatten(call(model, inputs)), setting.device)


def play_calls(model, setting: RunConfig, inputs: list[list], seeds: list[int]) -> list[list[torch.Tensor]]:
    """One call after the other: the leaves of their outputs, dense in memory in whatever order of dimensions."""
    with _no_collection():
        return [
            [_dense(leaf) for leaf in outputs_of(model, setting, arguments, seed)]
            for arguments, seed in zip(inputs, seeds)
        ]


def _dense(tensor: torch.Tensor) -> torch.Tensor:
    return tensor if is_dense(tensor) else tensor.contiguous()


def play(model, setting: RunConfig, seeds: list[int], timer, held: bool = True) -> Round:
    """Time one call for each seed, each on timed inputs of its own that did not exist before this round.

    Outputs are the leaves of each call's. With ``held`` launches are kept out of its times.
    """
    draws = [partial(setting.draw_one, seed) for seed in seeds]
    before = [partial(seed_generators, seed, setting.device) for seed in seeds]  # for a forward that draws
    with _no_collection():
        played = timer.run(partial(call, model), draws, before, held)
    return _flattened(played)


def play_untimed(model, setting: RunConfig, seed: int, draw: str) -> Round:
    """Call the model once on inputs from ``draw``; it is not timed, so caches are left as they are."""
    with _no_collection():
        inputs = setting.draw_one(seed, draw)
        seed_generators(seed, setting.device)
        output = call(model, inputs)
    if setting.device.type == "cuda":
        torch.cuda.synchronize()
    return _flattened(Round([inputs], [output], []))


def _flattened(played: Round) -> Round:
    played.structures = [structure_of(output) for output in played.outputs]
    played.outputs = [flatten(output) for output in played.outputs]
    return played


def launch_bound_ms(model, setting: RunConfig, seeds: list[int], timer) -> float:
    """Wall time a call, back to back and without a cold cache: device work plus what launching it costs."""
    return timer.launch_bound_ms(partial(call, model), setting.draw(seeds))


def profile(model, setting: RunConfig, seeds: list[int], timer) -> dict[str, Any]:
    """Return what the device ran in a typical one of so many calls."""
    before = [partial(seed_generators, seed, setting.device) for seed in seeds]
    return breakdown(timer.profile(partial(call, model), setting.draw(seeds), before))


def count_launches(model, setting: RunConfig, timer) -> int:
    """Return how many kernels, copies and fills one call starts on the device, as CUPTI saw them."""
    return profile(model, setting, fresh_seeds(1), timer)["launches"]


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Keep Python's garbage collector out of calls."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
