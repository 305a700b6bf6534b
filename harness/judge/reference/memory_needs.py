"""The least memory that an evaluation needs, known before there is any data.

Computed from a trace of the reference on tensors without data. It is a lower bound: it leaves out workspaces of
libraries and what allocators keep. So a problem that is refused does not fit; one that is not may still fail.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from dataclasses import dataclass

import torch

from harness.faults import NoRoom
from harness.judge.conditions import Conditions
from harness.problem.inputs import DTYPES, build_model, draw_inputs, tensors_of
from harness.problem.module import ProblemError, Workload
from harness.process.procfs import available_memory_bytes
from harness.sol.operators import Trace, View, trace

# A problem whose inputs and weights fit so often is not traced: that imports Dynamo, which takes seconds.
_FITS_OFTEN = 100
_needs: dict[tuple[str, str, torch.dtype], Need | None] = {}  # of problems, by path, sizes and type


@dataclass(frozen=True)
class Need:
    """Bytes of one call: inputs, outputs, weights, and all that lives at its largest moment besides weights."""

    inputs: int
    outputs: int
    weights: int
    peak: int

    @property
    def of_worker(self) -> int:
        """Bytes that a candidate's process holds after its call, with initial weights and those of one more trial."""
        return self.inputs + self.outputs + 2 * self.weights

    @property
    def together(self) -> int:
        """While the judge calls the reference on the same inputs; outputs or inputs then go through shared memory."""
        return self.of_worker + 2 * self.weights + self.peak + max(self.inputs, self.outputs)


def check_room(workload: Workload, conditions: Conditions) -> None:
    """Raise NoRoom where the workload does not fit the memory that is free on the device; to be called holding it."""
    device, dtype = conditions.device, DTYPES[conditions.precision]
    free = _free_bytes(device)
    if _FITS_OFTEN * _given_bytes(workload, dtype) < min(free, conditions.memory_bytes):
        return
    need = _need(workload, dtype)
    if need is None:
        return
    where = named(workload, conditions)
    if need.together > free and device.type == "cpu":  # other problems may have left this process as much
        ctypes.CDLL(None).malloc_trim(0)
        free = _free_bytes(device)
    if need.together > free:
        raise NoRoom(f"needs {_gb(need.together)} GB, {_gb(free)} are free: {where}; choose a smaller --workload")
    if device.type == "cpu" and need.of_worker > conditions.memory_bytes:
        raise NoRoom(
            f"needs {_gb(need.of_worker)} GB for the candidate's process, {_gb(conditions.memory_bytes)} are allowed: "
            f"{where}; choose a smaller --workload or a larger --memory"
        )


def named(workload: Workload, conditions: Conditions) -> str:
    """Return what does not fit, and where, for a message."""
    return f"problem {workload.problem.id} ({workload.name}, {conditions.precision}) on {conditions.device}"


def need_of(traced: Trace) -> Need:
    """The need of one call."""
    sizes: dict[int, int] = {}
    views = [*traced.inputs.values(), *traced.parameters.values(), *traced.outputs]
    views += [view for operator in traced.operators for view in (*operator.inputs, *operator.outputs)]
    for view in views:
        sizes[view.storage] = max(sizes.get(view.storage, 0), view.bytes)
    weights, inputs = _storages(traced.parameters.values()), _storages(traced.inputs.values())
    outputs = _storages(traced.outputs) - weights
    return Need(
        *(sum(sizes[storage] for storage in storages) for storages in (inputs, outputs, weights)),
        peak=_peak(traced, sizes, inputs, outputs, weights),
    )


def _peak(traced: Trace, sizes: dict[int, int], inputs: set[int], outputs: set[int], weights: set[int]) -> int:
    """The largest sum of what lives at once: inputs and outputs to the end, all else to its last use."""
    used = [_storages([*operator.inputs, *operator.outputs]) - weights for operator in traced.operators]
    last = {storage: index for index, storages in enumerate(used) for storage in storages}
    alive = set(inputs)
    peak = living = sum(sizes[storage] for storage in alive)
    for index, storages in enumerate(used):
        living += sum(sizes[storage] for storage in storages - alive)
        alive |= storages
        peak = max(peak, living)
        gone = {storage for storage in storages if last[storage] == index} - inputs - outputs
        living -= sum(sizes[storage] for storage in gone)
        alive -= gone
    return peak


def _storages(views: Iterable[View]) -> set[int]:
    return {view.storage for view in views}


def _need(workload: Workload, dtype: torch.dtype) -> Need | None:
    """None where the reference cannot be traced without data."""
    key = str(workload.problem.path), repr((workload.name, workload.sizes)), dtype  # held-out sizes share the name
    if key not in _needs:
        try:
            _needs[key] = need_of(trace(workload, dtype))
        except ProblemError:
            _needs[key] = None
    return _needs[key]


def _given_bytes(workload: Workload, dtype: torch.dtype) -> int:
    """Return the bytes of inputs and weights; 0 where they cannot be made without data."""
    meta = torch.device("meta")
    try:
        model = build_model(workload.problem.module.Model, workload, 0, meta, dtype)
        tensors = [*tensors_of(draw_inputs(workload, 0, meta, dtype)), *model.state_dict().values()]
    except Exception:
        return 0
    return sum(tensor.nbytes for tensor in tensors)


def _free_bytes(device: torch.device) -> int:
    if device.type == "cpu":
        return available_memory_bytes()
    return torch.cuda.mem_get_info(device)[0] + torch.cuda.memory_reserved(device)


def _gb(size: int) -> str:
    return f"{size / 1e9:.3g}"
