"""Judges from outside: a process for each device, which outlives neither the run nor the device."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import socket
import subprocess
import time
import traceback
from collections.abc import Callable
from typing import Any

from harness.compile import Artefact, must_be_readable
from harness.compile.artefact import ToolchainError
from harness.compile.python import runs_when_built
from harness.faults import MachineFault
from harness.job import decode_solution, encode_artefact, encode_problem, encode_solution
from harness.problem.module import ProblemFile
from harness.process import protocol
from harness.process.deadline import Page
from harness.process.spawn import start_server
from harness.result import CandidateFailure, Result, Status
from harness.solution.discover import Solution, SolutionError
from kernelbench.evaluation.control import holding, reference_as_candidate, told_of_tries, worked
from kernelbench.evaluation.executor import EnvironmentUnfit, Evaluated, Options, Skipped

OUR_OWN = "kernelbench failed, please report this"
_ALL = "cuda:all"
_UNWIND_S = 3.0
_GONE_S = 30.0  # after SIGKILL; a process that a driver holds never goes, and is left
_READY_S = 300.0  # an import of PyTorch from a slow disk, and a device that is woken
_LOOK_S = 0.5  # how often to look at a judge's deadlines
_SEND_S = 30.0  # a job is small; a judge that does not take it hangs


class _Late(Exception):
    """The judge has missed a deadline; the message says which."""


class Judge:
    """The judge's process of one device; started again if it dies, until the device is gone.

    A new one is starting; ``wait_until_ready`` must have been called before anything else.
    """

    def __init__(self, options: Options, device: str | None):
        self.requested = device
        self.lost: str | None = None  # why it cannot be used any more
        self._options = options
        self._ended = False
        self._start()

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        ours.settimeout(_SEND_S)
        self._process = start_server("harness.judge.main", theirs)
        self._connection, self._deadlines = ours, Page()
        options = self._options
        hello = {
            "device": self.requested,
            "precision": options.precision,
            "timeout_s": options.timeout_s,
            "memory_bytes": options.memory_bytes,
            "build_timeout_s": options.build_timeout_s,
            "baselines": options.paired,
            "cv_target": options.cv_target,
            "clock_mhz": options.clock_mhz,
            "track": options.track,
            "held_out": options.held_out,
            "held_out_seed": options.held_out_seed,
        }
        with contextlib.suppress(OSError):  # it died already, as `wait_until_ready` finds out
            socket.send_fds(ours, [b"\0"], [self._deadlines.fd])
            protocol.send(ours, hello)

    def wait_until_ready(self) -> None:
        """Raises EnvironmentUnfit where the judge cannot work, or dies twice."""
        try:
            answer = self._greeting()
        except _Late:
            self._end_process()
            raise EnvironmentUnfit(
                f"the judge's process was not ready within {_READY_S:g} s: a driver or a disk may hang"
            ) from None
        except (protocol.Closed, OSError):
            raise EnvironmentUnfit("the judge's process does not start; `kb doctor` says what is missing") from None
        if "unavailable" in answer:
            raise EnvironmentUnfit(answer["unavailable"])
        self.device: dict[str, Any] = answer["device"]
        self.visible: int = answer["visible"]  # GPUs of this host
        self.arch: str | None = answer["arch"]
        self.torch_version: str = answer["torch"]

    def _greeting(self) -> dict[str, Any]:
        """Return its first message; a judge that dies before it is started once more."""
        try:
            return self._receive(time.monotonic() + _READY_S)
        except (protocol.Closed, OSError):
            self._end_process()
            self._connection.close()
            self._deadlines.close()
            self._start()
        return self._receive(time.monotonic() + _READY_S)

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(
        self, job: dict[str, Any], phase: Callable[[str], None], timeout_s: float | None = None
    ) -> dict[str, Any]:
        """The judge's answer to a job; a judge that dies of it is replaced, and the job stays unevaluated.

        So is one that misses a deadline of its own, or has not answered within ``timeout_s``, which is ``late``.
        """
        until = time.monotonic() + timeout_s if timeout_s else math.inf
        try:
            protocol.send(self._connection, job)
            while "phase" in (answer := self._receive(until)):
                phase(answer["phase"])
        except _Late as late:
            self._end_process()
            reason = str(late) or f"not done within {timeout_s:g} s"
            answer = {"unevaluated": reason, "again": True, "every": reason.startswith("the reference"), "broken": True}
            answer["late"] = not str(late)
        except (protocol.Closed, protocol.Garbled, OSError):
            self._end_process()
            code = self._process.returncode
            reason = f"the judge's process died (exit status {code}) in this evaluation"
            answer = {"unevaluated": reason, "again": True, "broken": True}
        if answer.get("broken"):  # or it answered, and its device context may be gone
            self._end_process()
            self._replace()
        return answer

    def _receive(self, until: float) -> dict[str, Any]:
        """The next message; raises _Late where it does not come in time."""
        reader = protocol.Reader()
        while (message := reader.message()) is None:
            while not protocol.has_more(self._connection, _LOOK_S):
                if time.monotonic() > until:
                    raise _Late
                if until == math.inf and (missed := self._deadlines.missed()):
                    raise _Late(f"{missed[0]} did not end within {missed[1]:g} s")
            reader.feed(self._connection.recv(reader.wanted()))
        return message

    def _replace(self) -> None:
        self._connection.close()
        self._deadlines.close()
        if self._ended:
            self.lost = "the run was given up"
            return
        try:
            self._start()
            self.wait_until_ready()
        except (EnvironmentUnfit, OSError) as error:
            self.lost = str(error)

    def close(self) -> None:
        """Let it end by itself; kill it if it does not."""
        self._connection.close()
        self._deadlines.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        self._ended = True
        self._end_process()

    def _end_process(self) -> None:
        """End a process: at once if it can remove what its worker wrote, the hard way if it hangs."""
        self._process.terminate()
        try:
            self._process.wait(timeout=_UNWIND_S)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=_GONE_S)


def open_judges(options: Options) -> list[Judge]:
    """A judge for each device that ``options.device`` names, all started side by side.

    Raises EnvironmentUnfit where one of them cannot work, or where they are not of one kind.
    """
    names = options.device.split(",") if options.device else [None]
    judges: list[Judge] = []
    try:
        if names == [_ALL]:
            judges = _started(options, ["cuda:0"])
            judges += _started(options, [f"cuda:{index}" for index in range(1, judges[0].visible)])
        else:
            names = [name and name.strip() for name in names]
            if len(set(names)) < len(names):  # seen without a device
                raise _twice(options.device)
            judges = _started(options, names)
        _check_kind(judges)
    except BaseException:
        for judge in judges:
            judge.kill()
        raise
    return judges


def _started(options: Options, names: list[str | None]) -> list[Judge]:
    judges = [Judge(options, name) for name in names]
    try:
        for judge in judges:
            judge.wait_until_ready()
    except BaseException:
        for judge in judges:
            judge.kill()
        raise
    return judges


def _check_kind(judges: list[Judge]) -> None:
    """Times of one log are compared with each other, so they come from devices of one kind, each counted once."""
    kinds = sorted({judge.device["name"] for judge in judges})
    if len(kinds) > 1:
        raise EnvironmentUnfit(f"the devices of one run must be of one kind, not {' and '.join(kinds)}")
    identities = {judge.device.get("uuid", judge.device["type"]) for judge in judges}
    if len(identities) < len(judges):
        raise _twice(", ".join(str(judge.requested) for judge in judges))


def _twice(names: str) -> EnvironmentUnfit:
    return EnvironmentUnfit(f"--device names the same device twice: {names}")


EVALUATE: dict[str, Any] = {}  # the job of an evaluation has nothing beside problem, workload and solution
CHECK = {"only": "check"}  # compare outputs, no timing
_PROFILE = "profile"


def profile(ncu: list[str] | None) -> dict[str, Any]:
    """Return the job of profiling one call, with ncu's command line where there is one."""
    return {"only": _PROFILE, "ncu": ncu}


def measure(configuration: str) -> dict[str, Any]:
    """Return the job of timing a baseline, without a solution."""
    return {"measure": configuration}


def judged(
    judge: Judge,
    file: ProblemFile,
    solution: Solution,
    workload: str | None,
    built: Callable[[], Artefact],
    phase: Callable[[str], None],
) -> Evaluated | Skipped:
    """Evaluate one solution; ``built`` gives its artefact or raises what ``harness.compile.build`` does.

    Where the machine failed, or may have, the same is tried once more; a third time where it works for the reference.
    """
    with contextlib.ExitStack() as held:
        return _asked(judge, file, solution, {"workload": workload}, holding(built, held), phase)


def asked(judge: Judge, order: Any, workload: str | None, built: Callable[[], Artefact], phase) -> Any:
    """Return the judge's answer to a ``local_executor.Order``: Evaluated, or the record of another job, or Skipped."""
    job = {"workload": workload, **order.job}
    with contextlib.ExitStack() as held:
        return _asked(judge, order.file, order.solution, job, holding(built, held), phase)


def _asked(judge: Judge, file: ProblemFile, solution: Solution | None, job: dict[str, Any], built, phase) -> Any:
    job, failed = {"problem": encode_problem(file), **job}, {}
    if solution is not None:
        job["solution"] = encode_solution(solution)
        try:
            must_be_readable(decode_solution(job["solution"]))
            job["artefact"] = encode_artefact(built())
        except ToolchainError as error:
            return Skipped(solution, str(error))
        except CandidateFailure as failure:
            job["failure"] = {"status": failure.status.value, "message": failure.message, "log": failure.log}
        except Exception as fault:  # the machine's, or one of our own that its code has found
            reason = str(fault) if isinstance(fault, MachineFault) else f"{OUR_OWN}:\n{traceback.format_exc()}"
            if not runs_when_built(solution):
                return Skipped(solution, reason)
            job["artefact"] = encode_artefact(Artefact())  # what its code had the build do: to be told as of its calls
            failed = {"unevaluated": reason, "again": True}
    tries = [failed or _told(judge, job, phase)]
    if tries[0].get("again") and not judge.lost and not failed:
        tries.append(_told(judge, job, phase))
        if "unevaluated" in tries[1]:  # whatever it says now, the first try may have made it so
            tries[1]["again"] = True
    if _blames_the_machine(judge, tries[-1]) and job.get("artefact") and job.get("only") != _PROFILE:
        tries.append(_once_more_beside_a_control(judge, file, solution, job, tries[-1], phase))
    answer = tries.pop()
    if result := answer.get("read"):
        result.conditions = result.conditions | told_of_tries(tries)
        return Evaluated(solution, result)
    if record := answer.get("measured") or answer.get("profile"):
        return record
    return Skipped(solution, answer["unevaluated"], every=answer.get("every", False))


def _told(judge: Judge, job: dict[str, Any], phase: Callable[[str], None]) -> dict[str, Any]:
    """Return the judge's answer, with a record as it is ``read``; one that cannot be may be the candidate's doing."""
    answer = judge.ask(job, phase)
    try:
        if "result" in answer:
            answer["read"] = Result.from_json(answer["result"])
    except (ValueError, LookupError, TypeError) as error:
        return {"unevaluated": f"its record cannot be read, please report this: {error}", "again": True}
    return answer


def _blames_the_machine(judge: Judge, answer: dict[str, Any]) -> bool:
    return "unevaluated" in answer and answer.get("again", False) and not judge.lost


def _once_more_beside_a_control(
    judge: Judge, file: ProblemFile, solution: Solution, job: dict[str, Any], answer: dict[str, Any],
    phase: Callable[[str], None],
) -> dict[str, Any]:  # fmt: skip
    """Return what a third try gives, if the machine works with the reference in the candidate's place; else ``answer``.

    A candidate with which the machine fails each time, and with nobody else, has failed: as one that is not evaluated
    it would count nowhere, so that its author could withdraw what is wrong.
    """
    try:
        with reference_as_candidate(job, file, solution) as control:
            phase("the reference in its place")
            if not worked(judge.ask(control, phase)) or judge.lost:
                return answer
    except (OSError, SolutionError):
        return answer
    answer = _told(judge, job, phase)
    if "unevaluated" not in answer or judge.lost:
        return answer
    message = f"the machine failed three times with it, not with the reference in its place: {answer['unevaluated']}"
    failure = {"status": Status.CRASHED.value, "message": message, "log": ""}
    return _told(judge, job | {"failure": failure, "confirmed": True}, phase)
