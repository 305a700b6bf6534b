"""The judge as a process of its own, so that neither a reference nor a driver can take the run down.

Started by ``kernelbench``; reads jobs and answers with phases and results over
a Unix socket. One server owns one device.
"""

from __future__ import annotations

import importlib
import math
import resource
import signal
import socket
import sys
import time
import traceback
from typing import Any, NoReturn

import torch

from harness import device as devices
from harness.compile.artefact import Artefact
from harness.faults import MachineFault, NoRoom, check_disk, is_of_machine
from harness.integrity.held_out import evaluate_held_out
from harness.job import decode_artefact, decode_problem, decode_solution
from harness.judge.conditions import Conditions
from harness.judge.evaluate import evaluate
from harness.judge.profiles.one_call import profile
from harness.judge.record import failed_result
from harness.judge.reference.time_baseline import blank_measurement, measure
from harness.problem.math_modes import pin_math_modes
from harness.problem.module import Problem, ProblemError, Workload, load_problem
from harness.process import protocol, sandbox
from harness.process.deadline import Page, watched_by, within
from harness.process.fork_server import ForkServer
from harness.process.procfs import available_memory_bytes, end_with_parent, go_first
from harness.result import CandidateFailure, Result, Status
from harness.solution.discover import Solution
from harness.solution.includes import digest_of

_FIRST_TO_GO = 500  # where the system is short of memory: after workers, before the process of the run
_MEMORY_SHARE = 0.75  # of what is free at the start, for the judge's own data
# The longest work between two steps with limits of their own: comparing outputs, tracing, writing a record.
_SILENCE_S = 600.0
_CONDITIONS = ("precision", "timeout_s", "memory_bytes", "build_timeout_s", "baselines", "cv_target")
_CONDITIONS += ("clock_mhz", "track")


def serve(fd: int, workers: ForkServer) -> None:
    """Answer jobs until the other end closes the socket."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    end_with_parent()
    sandbox.protect()
    go_first(_FIRST_TO_GO)
    connection = socket.socket(fileno=fd)
    _, fds, _, _ = socket.recv_fds(connection, 1, 1)
    if not fds:  # who started this process has ended
        return
    watched_by(Page(fds[0]))
    hello = protocol.receive(connection)
    try:
        device = devices.select(hello["device"])
        torch.zeros(1, device=device).add_(1).cpu()  # a device that is lost is still counted
    except (devices.DeviceError, RuntimeError) as error:
        protocol.send(connection, {"unavailable": str(error)})
        return
    if device.type == "cpu":
        _limit_memory(int(_MEMORY_SHARE * available_memory_bytes()))
    conditions = Conditions(device, **{name: hello[name] for name in _CONDITIONS})
    protocol.send(
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
    signal.signal(signal.SIGTERM, _unwind)
    judge = _Judge(conditions, workers, connection, hello.get("held_out", 0), hello.get("held_out_seed", 0))
    while True:
        try:
            job = protocol.receive(connection)
        except protocol.Closed:
            return
        with within("the judge", _SILENCE_S):
            answer = judge.answer(job)
        protocol.send(connection, answer)


def _unwind(*_: object) -> NoReturn:
    """End this process so that workers end and their folders go; a second signal would interrupt that."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(1)


def _check_unwritten(problem: Problem) -> None:
    """Raise ProblemError where the problem's file is not what was loaded."""
    try:
        unwritten = digest_of(problem.path) == problem.sha256
    except OSError:
        unwritten = False
    if not unwritten:
        raise ProblemError(f"its problem was written meanwhile ({problem.path}): evaluate it again when it is done")


def _limit_memory(more_bytes: int) -> None:
    """Let this process allocate so much more: an allocation that fails has a message, unlike a kill by the system.

    On a CPU only, because a GPU's driver maps the device's memory as this process's own.
    """
    with open("/proc/self/statm", encoding="utf-8") as statm:
        now_bytes = int(statm.read().split()[5]) * resource.getpagesize()
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = now_bytes + more_bytes
    resource.setrlimit(resource.RLIMIT_DATA, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))


class _Judge:
    def __init__(
        self, conditions: Conditions, server: ForkServer, connection: socket.socket, held_out: int, held_out_seed: int
    ):
        self._conditions, self._server, self._connection = conditions, server, connection
        self._held_out, self._held_out_seed = held_out, held_out_seed
        self._problems: dict[str, Problem] = {}
        self._killed = ""  # by this signal on a held-out workload: the machine may have done that

    def answer(self, job: dict[str, Any]) -> dict[str, Any]:
        """{"result": record}, {"measured": record}, {"profile": record}, or {"unevaluated": reason}.

        The last is where not the candidate is at fault.

        With ``again`` the machine is, or may be: it is worth another try. With ``broken`` it is this process that
        failed, which should not go on. A record with ``again`` stands if the same happens again; ``killed`` names the
        signal that ended one of its processes. A problem whose file was written since it was loaded gives neither:
        another judge would load the new text, and results of one run would be of two.
        """
        try:
            workload = self._workload(job["problem"], job["workload"])
            _check_unwritten(workload.problem)
            answer = self._answer(workload, job)
            _check_unwritten(workload.problem)  # each worker has read the file anew
            return answer
        except (ProblemError, NoRoom) as error:
            return {"unevaluated": str(error)}
        except MachineFault as fault:
            return {"unevaluated": str(fault), "again": True, "broken": True}
        except Exception as error:
            reason = "the judge failed, please report this:\n" + traceback.format_exc()
            if is_of_machine(error) or isinstance(error, OSError):
                reason = f"the machine failed: {type(error).__name__}: {error}"
            return {"unevaluated": reason, "again": True, "broken": True}

    def _answer(self, workload: Workload, job: dict[str, Any]) -> dict[str, Any]:
        if "measure" in job:
            return {"measured": self._measured(workload, job["measure"], job.get("error"))}
        solution = decode_solution(job["solution"])
        if failure := job.get("failure"):  # it did not build: only the record is ours to write
            reported = CandidateFailure(Status(failure["status"]), failure["message"], failure["log"])
            result = failed_result(workload, solution, self._conditions, reported)
        else:
            artefact = decode_artefact(job["artefact"])
            if job.get("only") == "profile":
                return self._profiled(workload, solution, artefact, job.get("ncu"))
            result = self._evaluated(workload, solution, artefact, check_only=job.get("only") == "check")
        if not result.correct and not job.get("confirmed"):
            self._check_machine()
        killed = self._killed or result.conditions.get("killed_by", "")
        return {"result": result.to_json(), "again": bool(killed), "killed": killed}

    def _profiled(self, workload: Workload, solution, artefact, ncu: list[str] | None) -> dict[str, Any]:
        try:
            record = profile(workload, solution, artefact, self._conditions, self._server, self._phase, ncu)
        except CandidateFailure as failure:
            record = {"tool": "none", "note": f"not profiled: {failure.status}: {failure.message}"}
        return {"profile": record}

    def _evaluated(self, workload: Workload, solution: Solution, artefact: Artefact, check_only: bool) -> Result:
        """Evaluate one candidate; if it is correct, on held-out workloads too, where they were asked for."""
        self._killed = ""
        result = evaluate(workload, solution, artefact, self._conditions, self._server, self._phase, check_only)
        if result.correct and self._held_out and not check_only:
            def again(other: Workload, conditions: Conditions) -> Result:
                found = evaluate(other, solution, artefact, conditions, self._server, self._phase)
                if not found.correct:
                    self._check_machine()
                self._killed = self._killed or found.conditions.get("killed_by", "")
                return found

            begin = time.monotonic()
            result.held_out = evaluate_held_out(
                workload, self._held_out, self._held_out_seed, self._conditions, again
            )
            result.stages_s["held_out"] = round(time.monotonic() - begin, 3)
        return result

    def _check_machine(self) -> None:
        """Raises where a candidate may have failed because the disk is full or the device is lost."""
        check_disk()
        torch.zeros(1, device=self._conditions.device).add_(1).cpu()

    def _measured(self, workload: Workload, configuration: str, error: str | None) -> dict[str, Any]:
        """A baseline's record; with ``error``, of one that took its judge down or did not end."""
        limits = self._conditions
        if error:
            blank = blank_measurement(workload, configuration, limits.device, limits.precision)
            return blank | {"error": error, "conditions": pin_math_modes()}
        with within("the measurement", math.inf):  # its caller sets the limit
            return measure(
                workload, configuration, limits.device, limits.precision, limits.memory_bytes, limits.cv_target,
                self._phase,
            )  # fmt: skip

    def _workload(self, problem: dict[str, Any], name: str | None) -> Workload:
        if problem["path"] not in self._problems:
            with within("loading the problem", self._conditions.reference_s):
                self._problems[problem["path"]] = load_problem(decode_problem(problem))
        loaded = self._problems[problem["path"]]
        return loaded.workload_for(name, self._conditions.device.type)

    def _phase(self, text: str) -> None:
        protocol.send(self._connection, {"phase": text})
