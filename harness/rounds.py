"""One round: draw fresh inputs for each seed, call the model on each, time the calls.

Candidate and reference both run their rounds through this function, in their
own processes, so that nothing but the model differs between them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from harness.draw import build_model, call, draw_inputs, flatten, seed_generators
from harness.problem import Workload


@dataclass
class Round:
    inputs: list[list]  # of each call, as the call left them
    outputs: list[list[Any]]  # leaves of each call's output
    times_ms: list[float]
    queue_full: bool


@dataclass(frozen=True)
class Setting:
    """What a round is played on: the same on both sides of the process border."""

    workload: Workload
    device: torch.device
    dtype: torch.dtype

    def draw(self, seeds: list[int], draw: str = "published") -> list[list]:
        """The inputs of each call, drawn as one of ``hardened.DRAWS``."""
        return [draw_inputs(self.workload, seed, self.device, self.dtype, draw) for seed in seeds]

    def build(self, model_class: type, seed: int, weights: str = "initial"):
        return build_model(model_class, self.workload, seed, self.device, self.dtype, weights)


def play(model, setting: Setting, seeds: list[int], timer, draw: str = "published") -> Round:
    """One timed call for each seed, each on inputs of its own that did not exist before this round."""
    inputs = setting.draw(seeds, draw)
    before = [partial(seed_generators, seed, setting.device) for seed in seeds]  # for a forward that draws
    outputs, times_ms, queue_full = timer.run(partial(call, model), inputs, before)
    return Round(inputs, [flatten(output) for output in outputs], times_ms, queue_full)


def launch_bound_ms(model, setting: Setting, seeds: list[int], timer) -> float:
    """Wall time a call, back to back and without a cold cache: device work plus what launching it costs."""
    return timer.launch_bound_ms(partial(call, model), setting.draw(seeds))
