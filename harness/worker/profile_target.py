"""Runs a candidate in this very process, with no judge around it, for a profiler to watch one call.

``kernelbench.machine.ncu`` starts it under a profiler as its user's own program: it may do whatever they may do.
``harness.judge.profiles.one_call`` starts it in a candidate's sandbox, with all that its requests need built before.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from harness import device as devices
from harness.compile import BuildContext, build
from harness.compile.artefact import Translator
from harness.compile.extension.build import ExtensionBuilder
from harness.job import decode_problem, decode_solution
from harness.memory.guarded import UnguardedBuffers
from harness.problem.inputs import DTYPES, call, copy_matching_state, seed_generators
from harness.problem.math_modes import pin_math_modes
from harness.problem.module import load_problem
from harness.problem.signature import derive_signature
from harness.process import owned_folders
from harness.process.fork_server import ForkServer
from harness.process.procfs import default_memory_bytes
from harness.timing.rounds import RunConfig
from harness.worker import extensions
from harness.worker.load import LibraryModel, load_module

_WARM_UP = 3
_SEED = 0
_BUILD_TIMEOUT_S = 900.0


def main(job: dict[str, Any]) -> None:
    """Build, load, warm up; then one call between the profiler's marks, on inputs as published.

    All but the build waits for the device, and keeps others from it. In a sandbox the judge holds it already.
    """
    device = devices.select(job["device"])
    if device.type == "cuda":
        torch.cuda.set_device(device)
    pin_math_modes()
    problem, solution = load_problem(decode_problem(job["problem"])), decode_solution(job["solution"])
    setting = RunConfig(problem.workload(job["workload"]), device, DTYPES[job["precision"]])
    if "answers" in job:  # in a sandbox
        answers = iter(job["answers"])
        extensions.install(lambda request: next(answers))
        _call(setting, _model(setting, solution.path, Path(job["library"]) if job["library"] else None))
        return
    with ForkServer() as server, owned_folders.scratch() as scratch:
        arch, memory = devices.architecture(device), default_memory_bytes()
        translators = {kind: Translator.from_json(record) for kind, record in job.get("translators", {}).items()}
        context = BuildContext(server, arch, torch.__version__, _BUILD_TIMEOUT_S, memory, translators=translators)
        artefact = build(solution, context, problem.path)
        os.environ.update(artefact.env)
        builder = ExtensionBuilder(solution, context)
        extensions.install(lambda request: builder(request, scratch))
        with devices.exclusive(device):
            _call(setting, _model(setting, solution.path, artefact.library))


def _call(setting: RunConfig, model: Any) -> None:
    """Warm up, then make one call that the profiler watches."""
    for number in range(_WARM_UP + 1):
        inputs = setting.draw_one(_SEED + number, "published")
        if isinstance(model, LibraryModel):
            model.prepare(1, setting.device)
        seed_generators(_SEED, setting.device)
        watched = setting.device.type == "cuda" and number == _WARM_UP
        with _watched() if watched else contextlib.nullcontext():
            call(model, inputs)


@contextlib.contextmanager
def _watched() -> Iterator[None]:
    torch.cuda.synchronize()
    torch.cuda.profiler.start()
    yield
    torch.cuda.synchronize()
    torch.cuda.profiler.stop()


def _model(setting: RunConfig, path: Path, library: Path | None):
    reference = setting.build(setting.workload.problem.module.Model, _SEED)
    if library is None:
        model_of = getattr(setting.workload.problem.module, "model_of", None)
        model = setting.build(load_module(path, model_of), _SEED)
        copy_matching_state(reference, model)
        return model
    signature = derive_signature(setting.workload, setting.dtype)
    return LibraryModel(library, reference.state_dict(), **signature.for_library(), guards=UnguardedBuffers())


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
