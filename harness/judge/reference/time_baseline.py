"""A baseline without a candidate: the reference in one configuration, timed as in an evaluation, to be kept."""

from __future__ import annotations

import datetime
import gc
import secrets
import sys
import time
from collections.abc import Callable
from typing import Any

import torch

from harness import device as devices
from harness.baselines import BASELINES, COMPILING_CALLS, EAGER, FORMAT, describe_error
from harness.faults import is_of_machine
from harness.judge.reference.model import Reference
from harness.judge.reference.overflow import overflown
from harness.judge.reference.timed_inputs import choose_with_weights
from harness.problem.inputs import DTYPES, fresh_seeds, tensors_of
from harness.problem.math_modes import pin_math_modes
from harness.problem.module import ProblemError, Workload
from harness.tensors.outputs import as_tensor
from harness.timing import Round, cupti, timer_for
from harness.timing.interleaved import InterleavedTiming, bytes_of_call, calls_a_round
from harness.timing.rounds import RunConfig, count_launches, play


def measure(
    workload: Workload,
    configuration: str,
    device: torch.device,
    precision: str,
    memory_bytes: int,
    cv_target: float,
    phase: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """The record of one baseline; where it does not compile or run, ``error`` says why and ``timing`` is None.

    With ``again`` the machine is, or may be, at fault: it is worth another try.
    Times in ms, ``compile_s`` the seconds of the first calls, in which a compiled one is compiled.
    """
    begin = time.perf_counter()
    record = blank_measurement(workload, configuration, device, precision)
    with devices.exclusive(device, phase):
        record["conditions"] = pin_math_modes()
        try:
            setting = RunConfig(workload, device, DTYPES[precision])
            _fill(record, setting, configuration, memory_bytes, cv_target, phase)
        except Exception as error:
            record["error"] = describe_error(error)
            if is_of_machine(error):
                record["again"] = True
        _clean_up(device)
    record["seconds"] = round(time.perf_counter() - begin, 3)
    return record


def blank_measurement(workload: Workload, configuration: str, device: torch.device, precision: str) -> dict[str, Any]:
    """Everything that is known before anything has run."""
    problem = workload.problem
    return {
        "problem": str(problem.id),
        "problem_name": problem.name,
        "sha256": problem.sha256,
        "workload": {"name": workload.name, "sizes": workload.sizes},
        "precision": precision,
        "configuration": configuration,
        "timing": None,
        "error": "",
        "compile_s": None,
        "device": devices.describe(device),
        "conditions": {},
        "versions": devices.versions(device),
        "started": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "seconds": 0.0,
        "format": FORMAT,
    }


def _fill(record, setting: RunConfig, configuration: str, memory_bytes: int, cv_target: float, phase) -> None:
    timer = timer_for(setting.device)
    first = Reference(setting, secrets.randbits(62))
    timed, _, reference = choose_with_weights(first, lambda action: action(fresh_seeds(2)))
    reference = reference.timed_on(timed)
    setting = reference.setting
    model = BASELINES[configuration](reference.timed_model())
    phase("load" if configuration == EAGER else "compile")
    begin = time.perf_counter()
    for _ in range(COMPILING_CALLS):
        played = play(model, setting, fresh_seeds(1), timer)
    record["compile_s"] = round(time.perf_counter() - begin, 3)
    if lost := overflown(reference, *fresh_seeds(1)):
        raise ProblemError(f"the reference is not finite in {lost} elements with {record['precision']}")
    inputs = tensors_of(played.inputs[0])
    outputs = [as_tensor(leaf) for leaf in played.outputs[0]]
    traffic = bytes_of_call(setting.workload, reference.timed_model(), inputs, outputs)
    del played, inputs, outputs

    def play_round(calls: int, first: bool, waits: set[str]) -> dict[str, Round]:
        timer.wait_for_bandwidth()
        played = play(model, setting, fresh_seeds(calls), timer, held=configuration not in waits)
        return {configuration: played.release()}

    phase("time")
    contest = InterleavedTiming(play_round, timer, setting.device, cv_target)
    contest.run(calls_a_round(setting.device, memory_bytes, traffic))
    if setting.device.type == "cuda" and cupti.available():
        contest.launches[configuration] = count_launches(model, setting, timer)
    record["timing"] = contest.record(configuration)
    record["conditions"] |= contest.conditions()


def _clean_up(device: torch.device) -> None:
    """Leave nothing of this model to the next one. Raises where the device's context is gone."""
    if "torch._dynamo" in sys.modules:
        torch._dynamo.reset()  # holds compiled models, and the memory of their graphs
    gc.collect()
    if device.type == "cuda":
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
