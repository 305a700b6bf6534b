"""Everything that must happen in the same way on both sides of the process border.

The judge and the worker each build their model and draw their inputs from
seeds; nothing but the seed crosses between them. So both call these functions,
and equal seeds give equal tensors because device and order of draws are equal.
"""

from __future__ import annotations

import contextlib
import hashlib
import secrets
from collections.abc import Iterator
from typing import Any

import torch

from harness.problem.distributions import redraw
from harness.problem.module import Workload
from harness.problem.weights import hardened_initialisation, spread_constants, steps_remembered
from harness.tensors.dtypes import is_scaled

DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


def draw_inputs(
    workload: Workload, seed: int, device: torch.device, dtype: torch.dtype, draw: str = "published"
) -> list:
    """The inputs of one call, drawn on ``device`` as one of ``hardened.DRAWS``.

    Floating-point tensors are cast to ``dtype``; those of 8 bits, complex, integer and boolean
    ones keep their type, and scalars stay scalars. Where the problem keeps its dtypes, all do.
    """
    seed_generators(seed, device)
    seeds = _chained(seed)
    with torch.device(device):
        # its square can be held when it is rounded and something is added, so that a norm or a difference can
        largest = 0.9 * torch.finfo(dtype).max ** 0.5
        inputs = redraw(
            workload.get_inputs(), workload.problem, draw, largest, lambda: seed_generators(next(seeds), device)
        )
    dtype = None if workload.problem.keeps_dtypes else dtype
    return [_place(value, device, dtype) for value in inputs]


def build_model(
    model_class: type, workload: Workload, seed: int, device: torch.device, dtype: torch.dtype, weights: str = "initial"
):
    """``model_class(*get_init_inputs())`` under ``seed``, its parameters drawn on ``device``.

    With ``hardened`` weights, what would start as a constant starts at random
    around it; with ``changed`` ones it does so afterwards, and all others are the initial ones.
    The model stays in train mode, as its constructor leaves it.
    """
    hardened = _hardened(workload, dtype) if weights == "hardened" else contextlib.nullcontext()
    with torch.device(device), hardened:
        init_inputs = workload.get_init_inputs()
        seed_generators(seed, device)
        model = model_class(*init_inputs)
        if weights != "initial":
            spread_constants(model)
    return model.to(device=device, dtype=dtype)


def _hardened(workload: Workload, dtype: torch.dtype) -> contextlib.AbstractContextManager[None]:
    problem = workload.problem
    feedback = tuple(workload.sizes[name] for name in problem.feedback) if problem.feedback else None
    attention = (workload.sizes[problem.attention[0]], problem.attention[1]) if problem.attention else None
    memory = 0 if problem.forgets else steps_remembered(dtype)
    return hardened_initialisation(memory, feedback, attention, problem.raised, problem.centred, problem.even)


def copy_matching_state(source: torch.nn.Module, target: torch.nn.Module) -> bool:
    """Copy parameters and buffers where both state dicts have the same names and shapes."""
    ours, theirs = source.state_dict(), target.state_dict()
    if {k: v.shape for k, v in ours.items()} != {k: v.shape for k, v in theirs.items()}:
        return False
    with torch.no_grad():
        for name, value in ours.items():
            theirs[name].copy_(value)
    return True


def copy_changed_constants(initial: torch.nn.Module, changed: torch.nn.Module, target: torch.nn.Module) -> None:
    """Give ``target`` what ``changed`` has in place of constants of ``initial``, whatever it calls them.

    Into tensors of its own that start as the same constant of as many elements, in the order of either.
    """
    own = [*target.parameters(), *target.buffers()]
    with torch.no_grad():
        for before, after in zip(initial.parameters(), changed.parameters()):
            if torch.equal(before, after):
                continue
            start = before.flatten()[0]
            alike = (i for i, tensor in enumerate(own) if tensor.numel() == before.numel() and (tensor == start).all())
            if (index := next(alike, None)) is not None:
                tensor = own.pop(index)
                tensor.copy_(after.reshape(tensor.shape))


def seed_generators(seed: int, device: torch.device) -> None:
    """Seed the generators of CPU and device.

    Not ``torch.manual_seed``: before CUDA is initialised that formats a stack
    trace at every call, which takes as long as a small kernel.
    """
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        torch.cuda.init()
        torch.cuda.default_generators[device.index or 0].manual_seed(seed)


def _chained(seed: int) -> Iterator[int]:
    """Give seeds that follow from all of ``seed``: a CPU's generator takes 32 bits of it, which its numbers tell."""
    while True:
        seed = int.from_bytes(hashlib.blake2b(seed.to_bytes(8, "little"), digest_size=8).digest(), "little") >> 2
        yield seed


def fresh_seeds(count: int) -> list[int]:
    """Seeds that nobody could foresee."""
    return [secrets.randbits(62) for _ in range(count)]


def tensors_of(values: list) -> list[torch.Tensor]:
    """The tensors among the inputs of a call."""
    return [value for value in values if isinstance(value, torch.Tensor)]


def call(model, inputs: list) -> Any:
    """One forward without gradients."""
    with torch.no_grad():
        return model(*inputs)


def _place(value: Any, device: torch.device, dtype: torch.dtype | None) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    if dtype and is_scaled(value):
        return value.to(device=device, dtype=dtype)
    return value.to(device=device)
