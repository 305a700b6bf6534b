"""The worker's loop: load a candidate, run it on drawn inputs, hand over an output.

One request, one answer. An exception of the candidate becomes an answer too. The judge
finds out about a death of the process.
"""

from __future__ import annotations

import functools
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from harness.job import decode_problem
from harness.memory.cuda_ipc import shared
from harness.memory.guarded import GuardedBuffers
from harness.memory.placement import Placement
from harness.memory.shared_tensors import OpenedSharedTensors, lay_out
from harness.problem.inputs import DTYPES, copy_changed_constants, copy_matching_state, tensors_of
from harness.problem.math_modes import pin_math_modes
from harness.problem.module import load_problem
from harness.process import protocol
from harness.result import Status
from harness.tensors.outputs import as_tensor, as_tensors, kind_of
from harness.tensors.strides import order_of
from harness.timing import Round, timer_for
from harness.timing.gate import Gate
from harness.timing.rounds import InputCase, RunConfig, launch_bound_ms, play, play_calls, play_untimed, profile
from harness.worker import extensions
from harness.worker.explain import explain
from harness.worker.load import LibraryModel, load_module
from harness.worker.programs import compile_source, run_profiler
from harness.worker.rehearsal import Rehearsal
from harness.worker.usage import counted


def run(channel: socket.socket, fds: list[int]) -> None:
    """Answer requests until the judge closes the channel."""
    candidate = Candidate(fds, functools.partial(ask, channel, threading.Lock()))
    rehearsal = Rehearsal(fds)
    operations: dict[str, Callable[..., dict]] = {
        "compile": compile_source,
        "extension": compile_extension,
        "profiler": run_profiler,
        "import": candidate.import_only,
        "load": candidate.load,
        "forget": candidate.forget,
        "call": candidate.call,
        "run": candidate.run,
        "launch_bound": candidate.launch_bound,
        "fetch": candidate.fetch,
        "profile": candidate.profile,
        "usage": candidate.usage,
        "open_burst": candidate.open_burst,
        "prepare_burst": candidate.prepare_burst,
        "burst": candidate.burst,
        "close_burst": candidate.close_burst,
        "trim": candidate.trim,
        "clear": candidate.clear,
        "move": candidate.move,
        "hold": rehearsal.hold,
        "rehearse": rehearsal.rehearse,
        "rehearse_on_gpu": rehearsal.rehearse_on_gpu,
    }
    while True:
        try:
            request = protocol.receive(channel, rehearsal.begin)
        except protocol.Closed:
            return
        operation = operations[request.pop("op")]
        loading = operation in (compile_source, candidate.import_only, candidate.load)
        candidate.expects = Status.LOAD_ERROR if loading else Status.RUNTIME_ERROR
        try:
            answer = operation(**request)
        except BaseException as error:
            failure = explain(error, candidate.path, candidate.expects)
            answer = {"error": {"status": failure.status.value, "message": failure.message, "log": failure.log}}
        protocol.send(channel, answer)


def compile_extension(**request: Any) -> dict:
    """Build an extension for a candidate, in this process that has none."""
    from harness.compile.extension import torch_extension

    return torch_extension.build(**request)


def ask(channel: socket.socket, lock: threading.Lock, request: dict) -> dict:
    """Have the trusted side build an extension, while it waits for our answer to something else."""
    with lock:
        protocol.send(channel, {"build": request})
        return protocol.receive(channel)


class Candidate:
    """The candidate in this process, and the outputs of its last round."""

    def __init__(self, fds: list[int], ask: Callable[[dict], dict]):
        self._fds = fds
        self._ask = ask
        self._round = Round([], [], [])
        self._inputs_like: list = []  # those of a call: another draw would take as much memory as a call's inputs
        self._models: dict[str, Any] = {}
        self._guards = GuardedBuffers()  # of a library, which allocates nothing itself
        self._gate: Gate | None = None
        self._burst_memory: OpenedSharedTensors | None = None
        self._places: Placement | None = None  # without a GPU
        self.path = Path("solution")
        self.expects = Status.LOAD_ERROR

    def import_only(self, solution: str) -> dict:
        """Import a Python solution, so that the extensions it builds at import are built."""
        self.path = Path(solution)
        extensions.install(self._ask)
        load_module(self.path, model_of=lambda module: module)  # what it defines is looked at when it is loaded
        return {"ok": True}

    def load(self, *, solution: str, library: dict | None, setting: dict, seed: int, outbox: dict) -> dict:
        """Build the candidate's model, with the reference's weights where the state dicts match."""
        begin = time.perf_counter()
        self.path = Path(solution)
        self._device = torch.device(setting["device"])
        if self._device.type == "cuda":
            torch.cuda.set_device(self._device)
            self._places = Placement(self._device)
        pin_math_modes()
        self._problem = load_problem(decode_problem(setting["problem"]))
        # on a GPU a second copy of large inputs would not fit
        place = self._guarded if library and self._device.type == "cpu" else None
        dtype, timed = DTYPES[setting["precision"]], InputCase(*setting["timed"])
        workload = self._problem.workload(setting["workload"]).with_sizes(setting["changed"])
        self._setting = RunConfig(workload, self._device, dtype, timed, place)
        self._seed = seed
        self._library = (Path(library["path"]), library["signature"]) if library else None
        self._model_class = None
        if not library:
            extensions.install(self._ask)
            self._model_class = load_module(self.path, getattr(self._problem.module, "model_of", None))
        self._outbox = OpenedSharedTensors(outbox, self._fds)
        self._timer = timer_for(self._device)
        copied = self._build("initial")
        return {"weights": "copied" if copied else "seeded", "setup_s": time.perf_counter() - begin}

    def _build(self, weights: str) -> bool:
        """Make the candidate's model with these weights; whether they are the reference's own values."""
        reference = self._setting.build(self._problem.module.Model, self._seed, weights)
        if self._library:
            path, signature = self._library
            self._models[weights] = LibraryModel(path, reference.state_dict(), **signature, guards=self._guards)
            copied = True
        elif weights == "changed":
            model = self._models[weights] = self._setting.build(self._model_class, self._seed)
            copy_changed_constants(self._setting.build(self._problem.module.Model, self._seed), reference, model)
            copied = False
        else:
            self._models[weights] = self._setting.build(self._model_class, self._seed, weights)
            copied = copy_matching_state(reference, self._models[weights])
        self._synchronize()
        return copied

    def forget(self, weights: str) -> dict:
        """Free the model with these weights."""
        self._models.pop(weights, None)
        return {"ok": True}

    def call(self, seed: int, draw: str, weights: str) -> dict:
        """Call the model once, untimed; answers with what its outputs look like."""
        self._round = Round([], [], [])  # frees the last round's outputs before this one's exist
        self._round = play_untimed(self._prepared(weights, 1), self._setting, seed, draw)
        return self._described()

    def run(self, seeds: list[int], held: bool) -> dict:
        """Play one timed round; answers with its times and what its outputs look like."""
        self._round = Round([], [], [])
        model = self._prepared(self._setting.timed.weights, len(seeds))
        self._round = play(model, self._setting, seeds, self._timer, held)
        return self._described() | {
            "times_ms": self._round.times_ms,
            "queue_full": self._round.queue_full,
            "empty_ms": self._round.empty_ms,
        }

    def _described(self) -> dict:
        self._inputs_like = [_without_data(value) for value in self._round.inputs[0]]
        return {
            "structures": self._round.structures,
            "outputs": [[self._describe(leaf) for leaf in leaves] for leaves in self._round.outputs],
            "overruns": self._guards.overruns(),
        }

    def _guarded(self, inputs: list) -> list:
        """Inputs whose surroundings tell if the library wrote there."""
        return [
            self._guards.hold(value, f"input {index}") if isinstance(value, torch.Tensor) else value
            for index, value in enumerate(inputs)
        ]

    def launch_bound(self, seeds: list[int]) -> dict:
        self._round = Round([], [], [])
        model = self._prepared(self._setting.timed.weights, len(seeds) + 1)  # it is called once before
        return {"wall_ms": launch_bound_ms(model, self._setting, seeds, self._timer)}

    def _prepared(self, weights: str, calls: int):
        """The model, built if it is not there, with outputs for so many calls if it is a library."""
        if weights not in self._models:
            self._build(weights)
        model = self._models[weights]
        self._guards.begin()
        if self._library:
            model.prepare(calls, self._device)
        return model

    def fetch(self, call: int, what: str) -> dict:
        """Copy the ``outputs`` or the ``inputs`` of one call of the last round into the judge's memory."""
        if what == "inputs":
            tensors = tensors_of(self._round.inputs[call])
        else:
            tensors = as_tensors(self._round.outputs[call], self._device)
        for slot, tensor in zip(lay_out(tensors), tensors):
            self._outbox.write(slot, tensor)
        self._synchronize()
        return {"ok": True}

    def profile(self, seeds: list[int]) -> dict:
        """Return what the device runs in a call."""
        self._round = Round([], [], [])
        model = self._prepared(self._setting.timed.weights, 2 * len(seeds))  # each is called twice
        return profile(model, self._setting, seeds, self._timer)

    def usage(self, seeds: list[int]) -> dict:
        """Return what the operating system counts for one call for each seed, after a call that is not counted."""
        model = self._prepared(self._setting.timed.weights, len(seeds) + 1)
        inputs = self._setting.draw([*seeds, seeds[0]])
        play_calls(model, self._setting, inputs[-1:], seeds[:1])
        return counted(lambda: play_calls(model, self._setting, inputs[:-1], seeds))

    def open_burst(self, handle: dict, calls: int) -> dict:
        """Open the memory of the inputs of so many calls, which are like the last round's."""
        self._round = Round([], [], [])
        self._drop_burst()  # of a burst that failed
        self._burst_memory = OpenedSharedTensors(handle, self._fds[-1:])
        views = (self._burst_memory.view(slot) for slot in lay_out(tensors_of(self._inputs_like) * calls))
        self._burst_inputs = [
            [next(views) if isinstance(value, torch.Tensor) else value for value in self._inputs_like]
            for _ in range(calls)
        ]
        if self._device.type == "cuda" and self._gate is None:
            self._gate = Gate(self._fds[-1])
        return {"ok": True}

    def prepare_burst(self, calls: int) -> dict:
        """Do what is to be done before a burst of so many calls and is no part of it."""
        overruns = self._guards.overruns()  # of the burst before
        self._burst_left = []
        self._burst_model = self._prepared(self._setting.timed.weights, calls)
        self._synchronize()
        return {"overruns": overruns}

    def burst(self, seeds: list[int], first: int = 0, number: int = 0) -> dict:
        """Call the model on the burst's inputs, from ``first`` on; say where the outputs lie.

        On a GPU each call waits for a gate of its own, from ``number`` on, and ends with a mark. Outputs stay until
        the next burst, on a CPU, where all calls have the same input memory, until the next call.
        """
        if first == 0:
            self._burst_left = []
        left, allocations = [], self._burst_memory.exported
        for call, seed in enumerate(seeds):
            if self._gate:
                self._gate.hold(number + call)
            outputs = play_calls(self._burst_model, self._setting, [self._burst_inputs[first + call]], [seed])
            if self._gate:
                outputs, lying_in = shared(outputs, allocations)
                allocations |= lying_in
                self._gate.mark(number + call)
            left += outputs
        self._burst_left += left
        return {
            "allocations": list(allocations.items()),
            "orders": [[order_of(leaf) for leaf in leaves] for leaves in left],
            "addresses": [[leaf.data_ptr() for leaf in leaves] for leaves in left],
        }

    def close_burst(self) -> dict:
        self._drop_burst()
        return {"overruns": self._guards.overruns()}

    def _drop_burst(self) -> None:
        """Free the outputs of a burst, and give up the memory of its inputs, which is the judge's."""
        self._burst_inputs = self._burst_left = None
        if memory := self._burst_memory:
            self._burst_memory = None
            memory.close()

    def trim(self) -> dict:
        """Give the device memory back that the allocator keeps."""
        if self._places:
            self._places.give_back()
        return {"ok": True}

    def clear(self) -> dict:
        """Release caches, a burst and the outputs of the last round."""
        self._round = Round([], [], [])
        self._drop_burst()
        self._guards.begin()
        return self.trim()

    def move(self) -> dict:
        """Return what is allocated next lies in other places of the device's memory."""
        self._round = Round([], [], [])
        self._places.change()
        return {"ok": True}

    def _describe(self, leaf: Any) -> dict:
        if (kind := kind_of(leaf)) != "Tensor":
            return {"type": kind}
        tensor = as_tensor(leaf)
        return {
            "type": kind,
            "shape": list(tensor.shape),
            "dtype": str(tensor.dtype).removeprefix("torch."),
            "device": str(leaf.device if isinstance(leaf, torch.Tensor) else self._device),
        }

    def _synchronize(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize()


def _without_data(value: Any) -> Any:
    return torch.empty_like(value, device="meta") if isinstance(value, torch.Tensor) else value
