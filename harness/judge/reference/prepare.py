"""Prepare an evaluation: call the reference, and check it, before there is a candidate."""

from __future__ import annotations

import functools
import secrets
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import torch

from harness.faults import MachineFault, NoRoom, is_of_machine
from harness.judge.conditions import Conditions
from harness.judge.idle_cores import wait_for_idle_cores
from harness.judge.reference import soundness
from harness.judge.reference.memory_needs import check_room, named
from harness.judge.reference.model import PUBLISHED, InputCase, Reference
from harness.judge.reference.timed_inputs import choose_with_weights, tells
from harness.memory.shared_tensors import SharedTensors
from harness.problem.inputs import DTYPES, fresh_seeds, tensors_of
from harness.problem.module import ProblemError, Workload
from harness.problem.signature import Signature, signature_of
from harness.process.deadline import within
from harness.result import CandidateFailure
from harness.tensors.outputs import as_tensor
from harness.timing.interleaved import bytes_of_call
from harness.timing.rounds import RunConfig

_MOST_REDRAWN = 16  # chosen, for one evaluation: with two thirds of them, where timed inputs are nearest to published
_PATIENCE_S = 0.3  # chosen: the threads of a call of PyTorch spin for 0.1 s or less
_PATIENCE_AFTER_OTHERS_S = 3.0  # chosen: what 4 GB leave the kernel at an end was seen to take 0.4 s


@dataclass(frozen=True, eq=False)
class Facts:
    """Inputs and outputs of calls of a reference, whatever the seed: the same for all candidates of a workload.

    Attributes
    ----------
    timed
        The inputs that are timed.
    tells
        Whether its outputs depend on these, and on all their bits, by ``timed_inputs.tells``, where weights have a part
        in that.
    inputs, kinds
        The tensors among its inputs, and its outputs, without data.
    structure
        How outputs are nested; None for a library, which has a ``signature`` instead.
    traffic
        Bytes of one call: inputs, weights and outputs.
    """

    timed: InputCase
    tells: tuple[bool, bool]
    inputs: list[torch.Tensor]
    kinds: list[torch.Tensor]
    structure: str | None
    signature: Signature | None
    traffic: int


@dataclass(frozen=True)
class Prepared:
    """A reference with weights of this evaluation, and memory for what comes back of a call: outputs, or inputs.

    ``cores_rest``: on a CPU, whether its cores came to rest before there was a candidate. Then they do after one, too.
    """

    reference: Reference
    facts: Facts
    outbox: SharedTensors
    cores_rest: bool


_facts: dict[Hashable, Facts] = {}  # of the workloads that this process has judged
_rest = {"seen": False}  # whether the cores were idle when this process last looked


def prepare(workload: Workload, conditions: Conditions, is_library: bool) -> Prepared:
    """Build the reference; the first time, check that it can be judged against, and choose the inputs that are timed.

    Raises ProblemError where it cannot, NoRoom where the workload does not fit the memory, and MachineFault.
    """
    check_room(workload, conditions)
    setting = RunConfig(workload, conditions.device, DTYPES[conditions.precision])
    key = (
        workload.problem.module, workload.name, repr(workload.sizes), conditions.precision, conditions.structure,
        is_library,
    )  # fmt: skip
    if key not in _facts:
        _facts[key] = _find_facts(setting, conditions, is_library)
    facts = _facts[key]
    reference = _telling_reference(setting, conditions, facts)
    outbox = _room_for_outputs(workload, conditions, facts)
    cores_rest = conditions.device.type == "cpu" and _cores_rest()
    return Prepared(reference.timed_on(facts.timed), facts, outbox, cores_rest)


def _cores_rest() -> bool:
    """Return whether the cores come to rest, which those that were idle before have time for.

    A candidate before, or the same in an earlier try, may have left the kernel work for seconds.
    """
    _rest["seen"] = wait_for_idle_cores(_PATIENCE_AFTER_OTHERS_S if _rest["seen"] else _PATIENCE_S)
    return _rest["seen"]


def _room_for_outputs(workload: Workload, conditions: Conditions, facts: Facts) -> SharedTensors:
    """Allocate what a candidate's outputs or inputs go through; NoRoom where that does not fit beside the reference."""
    try:
        return with_room(lambda: SharedTensors(conditions.device, facts.kinds, facts.inputs))
    except torch.OutOfMemoryError as error:
        raise NoRoom(f"{error}: {named(workload, conditions)}; choose a smaller --workload") from error


def _telling_reference(setting: RunConfig, conditions: Conditions, facts: Facts) -> Reference:
    """Return a reference with new weights, with which its outputs depend on its inputs where they ever do.

    Else whoever sees by the weights that they do not, as one bias may say, need not compute what is timed.
    """
    best = Reference(setting, secrets.randbits(62))
    if not any(facts.tells):
        return best
    told = _tells(best, conditions, facts.timed)
    for _ in range(_MOST_REDRAWN):
        if told >= facts.tells:
            break
        best = Reference(setting, best.weight_seed)  # without its models: there may be no room for others beside them
        other = Reference(setting, secrets.randbits(62))
        if (told_of_other := _tells(other, conditions, facts.timed)) > told:
            best, told = other, told_of_other
    return best


def _tells(reference: Reference, conditions: Conditions, timed: InputCase) -> tuple[bool, bool]:
    return _on_two_seeds(reference.setting.workload, conditions, functools.partial(tells, reference, timed))


def _on_two_seeds(workload: Workload, conditions: Conditions, action: Callable[[list[int]], Any]) -> Any:
    call = functools.partial(action, fresh_seeds(2))
    return call_reference(workload, conditions, call, "timed inputs")


def _find_facts(setting: RunConfig, conditions: Conditions, is_library: bool) -> Facts:
    workload, reference = setting.workload, Reference(setting, secrets.randbits(62))
    (seed,) = fresh_seeds(1)

    def called(action: Callable[[], Any]) -> Any:
        return call_reference(workload, conditions, action, "")

    example = called(lambda: reference.call(PUBLISHED, seed))
    called(lambda: soundness.check(reference, seed, example))
    on_two_seeds = functools.partial(_on_two_seeds, workload, conditions)
    timed, told, _ = choose_with_weights(reference, on_two_seeds, conditions.structure)
    kinds = [as_tensor(leaf).to("meta") for leaf in example.outputs[0]]
    inputs, model = tensors_of(example.inputs[0]), reference.model()
    # from a call that was made: tracing one first imports what takes seconds
    signature = signature_of(workload, example.inputs[0], model.state_dict(), kinds) if is_library else None
    return Facts(
        timed=timed,
        tells=told if reference.has_weights() else (False, False),
        inputs=[tensor.to("meta") for tensor in inputs],
        kinds=kinds,
        structure=None if is_library else example.structures[0],
        signature=signature,
        traffic=bytes_of_call(workload, model, inputs, kinds),
    )


def with_room(action: Callable[[], Any]) -> Any:
    """Return ``action()``; where the device's memory is full, once more after the allocator gave back what it keeps."""
    try:
        return action()
    except torch.OutOfMemoryError:
        pass  # outside of the handler, which would hold the memory of what failed
    torch.cuda.empty_cache()
    return action()


def call_reference(
    workload: Workload,
    conditions: Conditions,
    action: Callable[[], Any],
    drawn: str,
    with_room: Callable[[Callable[[], Any]], Any] = with_room,
) -> Any:
    """Return ``action()``, which calls the reference on what is ``drawn``, '' if as published, ``with_room``.

    Raises ProblemError where that fails, and MachineFault where memory or the device is to blame.
    """
    try:
        with within("the reference", conditions.reference_s):
            return with_room(action)
    except (CandidateFailure, MachineFault, ProblemError):
        raise
    except Exception as error:
        which = drawn and f" with {drawn} (what inputs it takes is for DOMAIN to say)"
        kind = MachineFault if is_of_machine(error) else ProblemError
        raise kind(
            f"the reference of {workload.problem.id} ({workload.name}, {conditions.precision}) fails on "
            f"{conditions.device}{which}: {type(error).__name__}: {error}"
        ) from error
