"""The judge as a process of its own, so that neither a reference nor a driver can take the run down.

Started by ``kernelbench``; reads jobs and answers with phases and results over
a Unix socket. One server owns one device.
"""

from __future__ import annotations

import ctypes
import importlib
import signal
import socket
import sys
import traceback
from typing import Any

import torch

from harness import device as devices
from harness import wire
from harness.build import CacheError
from harness.codec import decode_artefact, decode_problem, decode_solution
from harness.judge.alone import blank_measurement, measure
from harness.judge.judge import Conditions, evaluate, failed_result
from harness.math_modes import pin_math_modes
from harness.problem import Problem, ProblemError, Workload, load_problem
from harness.process import ForkServer
from harness.result import CandidateFailure, Status
from harness.worker import sandbox

_PR_SET_PDEATHSIG = 1
_CONDITIONS = ("precision", "timeout_s", "memory_bytes", "build_timeout_s", "baselines", "criterion", "track")


def serve(fd: int, workers: ForkServer) -> None:
    """Answer jobs until the other end closes the socket."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    sandbox.protect()
    connection = socket.socket(fileno=fd)
    hello = wire.receive(connection)
    try:
        device = devices.select(hello["device"])
        torch.zeros(1, device=device).add_(1).cpu()  # a device that is lost is still counted
    except (devices.DeviceError, RuntimeError) as error:
        wire.send(connection, {"unavailable": str(error)})
        return
    conditions = Conditions(device, **{name: hello[name] for name in _CONDITIONS})
    wire.send(
        connection,
        {
            "device": devices.describe(device),
            "visible": torch.cuda.device_count(),
            "arch": devices.architecture(device),
            "torch": torch.__version__,
        },
    )
    if device.type == "cuda":
        # Tracing a reference for its bounds imports this, which takes seconds: now, while the first solutions build.
        importlib.import_module("torch._dynamo")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # unwinds: workers end, their folders go
    judge = _Judge(conditions, workers, connection)
    while True:
        try:
            job = wire.receive(connection)
        except wire.Closed:
            return
        wire.send(connection, judge.answer(job))


class _Judge:
    def __init__(self, conditions: Conditions, server: ForkServer, connection: socket.socket):
        self._conditions, self._server, self._connection = conditions, server, connection
        self._problems: dict[str, Problem] = {}

    def answer(self, job: dict[str, Any]) -> dict[str, Any]:
        """{"result": record}, {"measured": record}, or {"unevaluated": reason} where not the candidate is at fault.

        With ``broken`` it is this process that failed, which should not go on.
        """
        try:
            workload = self._workload(job["problem"], job["workload"])
            if "measure" in job:
                return {"measured": self._measured(workload, job["measure"], job.get("error"))}
            solution = decode_solution(job["solution"])
            if failure := job.get("failure"):  # it did not build: only the record is ours to write
                reported = CandidateFailure(Status(failure["status"]), failure["message"], failure["log"])
                result = failed_result(workload, solution, self._conditions, reported)
            else:
                artefact = decode_artefact(job["artefact"])
                result = evaluate(workload, solution, artefact, self._conditions, self._server, self._phase)
            return {"result": result.to_json()}
        except (ProblemError, CacheError) as error:
            return {"unevaluated": str(error)}
        except Exception:
            reason = "the judge failed, please report this:\n" + traceback.format_exc()
            return {"unevaluated": reason, "broken": True}

    def _measured(self, workload: Workload, configuration: str, error: str | None) -> dict[str, Any]:
        """A baseline's record; with ``error``, of one that took its judge down or did not end."""
        limits = self._conditions
        if error:
            blank = blank_measurement(workload, configuration, limits.device, limits.precision)
            return blank | {"error": error, "conditions": pin_math_modes()}
        return measure(
            workload, configuration, limits.device, limits.precision, limits.memory_bytes, limits.criterion, self._phase
        )

    def _workload(self, problem: dict[str, Any], name: str | None) -> Workload:
        if problem["path"] not in self._problems:
            self._problems[problem["path"]] = load_problem(decode_problem(problem))
        loaded = self._problems[problem["path"]]
        return loaded.workload_for(name, self._conditions.device.type)

    def _phase(self, text: str) -> None:
        wire.send(self._connection, {"phase": text})
