"""Forks worker processes from a warm parent: torch imported, no device context, no candidate ever.

Importing torch takes seconds and a fork milliseconds, so one such server serves
a whole run. It talks to ``harness.process.fork_server`` over a SOCK_SEQPACKET socket: a
request is file descriptors, in this order: a file that holds one JSON object, the
worker's channel, its output pipe, a pipe for its exit status, and whatever else the
worker is to inherit. One with the file alone asks how workers are confined.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import importlib
import json
import os
import selectors
import signal
import socket
import sys
import traceback
from pathlib import Path

from harness.memory import process_memory
from harness.process import memory_cgroup, sandbox
from harness.process.owned_folders import remove_tree
from harness.process.procfs import descendants, end_with_parent, go_first, tasks_that_stop
from harness.process.sandbox.import_path import private_places
from harness.process.spawn import close_all_but
from harness.process.worker_failures import NOT_BEGUN

_PR_SET_CHILD_SUBREAPER = 36
_MAX_FDS = 17
_FIRST_TO_GO = 1000  # where the system is short of memory, a worker goes before judges, and these before others
_NICENESS = 10  # of what runs in the background: a tenth of the time of a core that another wants

_libc = ctypes.CDLL(None)


def warm_up() -> None:
    """Import what the workers are to find loaded."""
    import torch  # noqa: F401
    import torch.utils._pytree  # noqa: F401

    # Of torch.utils.cpp_extension only what takes long: it asks the driver for GPUs when it is
    # imported, and then no child of this process could use one.
    with contextlib.suppress(ImportError):
        importlib.import_module("setuptools.command.build_ext")

    from harness.worker import main  # noqa: F401


def serve(control_fd: int) -> None:
    """Serve until the other end of the socket closes, or a failure; kill every worker, and remove what it wrote."""
    warm_up()
    layers = sandbox.available()
    sandbox.protect()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    # Orphans of a worker come to us, so that they can be found and killed.
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    control, server = socket.socket(fileno=control_fd), os.getpid()
    selector = selectors.PollSelector()  # watches of epoll are the user's, and somebody else may have them all
    selector.register(control, selectors.EVENT_READ)
    workers: dict[int, tuple[int, int]] = {}  # pidfd -> (pid, exit-status pipe)
    ended: dict[int, int] = {}  # exit-status pipe -> pid
    folders: list[Path] = []  # of workers, and control groups, which their owner removes if it lives
    try:
        _answer(control, selector, workers, ended, folders, layers)
    finally:
        if os.getpid() == server:
            _end_all([pid for pid, _ in workers.values()])
    for folder in folders:
        if folder.is_dir():  # its owner was killed
            remove_tree(folder)  # files of a control group are the kernel's, and go with it


def _answer(
    control: socket.socket,
    selector: selectors.BaseSelector,
    workers: dict[int, tuple[int, int]],
    ended: dict[int, int],
    folders: list[Path],
    layers: dict[str, str],
) -> None:
    while True:
        for key, _ in selector.select():
            if key.fd in workers:
                selector.unregister(key.fd)
                pid, status_fd = workers.pop(key.fd)
                os.close(key.fd)
                _end(pid, status_fd)
                ended[status_fd] = pid
                selector.register(status_fd, selectors.EVENT_READ)  # tells when the other end is closed
                if workers:
                    _bury_orphans({pid for pid, _ in workers.values()} | {*ended.values()})
                else:
                    _kill_orphans({*ended.values()})
                continue
            if key.fd in ended:
                selector.unregister(key.fd)
                os.close(key.fd)
                os.waitpid(ended.pop(key.fd), 0)
                continue
            data, fds, _, _ = socket.recv_fds(control, 1, _MAX_FDS)
            if not data:
                return
            with os.fdopen(fds.pop(0), "rb") as file:
                file.seek(0)
                request = json.load(file)
            if not fds:
                control.send(json.dumps(layers).encode())
                continue
            new = [Path(folder) for folder in (request["cwd"], request["group"]) if folder]
            folders[:] = [folder for folder in folders if folder.is_dir()] + new
            try:
                pid = os.fork()
            except OSError as error:  # too many processes, no memory
                for fd in fds:
                    os.close(fd)
                control.send(json.dumps({"error": error.strerror}).encode())
                continue
            if pid == 0:
                control.close()
                selector.close()
                close_all_but(fds)  # those of other workers
                _become_worker(request, fds, list(layers))
            pidfd = os.pidfd_open(pid)
            workers[pidfd] = (pid, fds[2])
            selector.register(pidfd, selectors.EVENT_READ)
            for fd in (*fds[:2], *fds[3:]):
                os.close(fd)
            control.send(json.dumps({"pid": pid}).encode())


def _become_worker(request: dict, fds: list[int], layers: list[str]) -> None:
    """Become a worker in the child: own group, scrubbed environment, confined. Never returns."""
    code = NOT_BEGUN
    try:
        end_with_parent()
        channel_fd, output_fd, status_fd, *inherited = fds
        os.close(status_fd)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(output_fd, 1)
        os.dup2(output_fd, 2)
        sys.stdout = open(1, "w", encoding="utf-8", buffering=1, closefd=False, errors="replace")
        sys.stderr = open(2, "w", encoding="utf-8", buffering=1, closefd=False, errors="replace")
        os.close(output_fd)
        if request["group"]:
            memory_cgroup.join(request["group"])
        go_first(_FIRST_TO_GO)
        if request["background"]:
            _leave_the_cores()
        else:
            os.setsid()
        private = tuple(private_places())  # as long as the environment and the folder are the server's
        os.environ.clear()
        os.environ.update(request["env"])
        os.chdir(request["cwd"])
        faulthandler.enable(file=sys.__stderr__ if sys.__stderr__ else 2)
        from harness.worker import main

        channel = socket.socket(fileno=channel_fd)
        sandbox.unprotect()
        process_memory.give(channel)  # which nobody can who is confined
        selectors.DefaultSelector = selectors.PollSelector  # for asyncio: calls of the other one are refused
        sandbox.enter(layers, sandbox.Confinement(**request["confinement"], private=private))
        code = 1
        main.run(channel, inherited)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _leave_the_cores() -> None:
    """A group that others go before: builds on all cores would be seen in what is timed meanwhile.

    The scheduler of many systems weighs whole sessions, and niceness only inside of one: so this one stays
    in the server's, which counts once for all that it builds.
    """
    os.setpgid(0, 0)
    os.nice(_NICENESS)


def _end_all(pids: list[int]) -> None:
    """Kill all workers, and what they started."""
    for pid in pids:
        _kill_group(pid)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)
    _kill_orphans(set())


def _end(pid: int, status_fd: int) -> None:
    """Kill what a worker that has ended left in its group, and report how it ended, and how many processes it left.

    Its number, which is that of the group, stays taken until its owner has closed the pipe: until then that may send
    signals to it, and another process of the user's could have the number.
    """
    how = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    left = _left_by(pid)
    _kill_group(pid)
    code = how.si_status if how.si_code == os.CLD_EXITED else -how.si_status
    with contextlib.suppress(BrokenPipeError):
        os.write(status_fd, json.dumps([code, left]).encode())


def _left_by(worker: int) -> int:
    """Return how many processes of a worker that has ended are there: its children are ours by now."""
    orphans = [pid for pid in _children() if pid != worker and os.getpgid(pid) == worker]
    if orphans:
        os.killpg(worker, signal.SIGSTOP)  # a crowd would grow while it is looked at
    return sum(bool(tasks_that_stop(pid)) for orphan in orphans for pid in descendants(orphan))


def _children() -> list[int]:
    with open(f"/proc/self/task/{os.getpid()}/children", encoding="utf-8") as children:
        return [int(pid) for pid in children.read().split()]


def _bury_orphans(workers: set[int]) -> None:
    """Free the numbers of children that have ended and were no ``workers``; of those that run nobody knows whose."""
    for pid in _children():
        if pid not in workers:
            os.waitpid(pid, os.WNOHANG)


def _kill_orphans(ended: set[int]) -> None:
    """Kill every child that is left while no worker is alive, but ``ended`` ones: a candidate hid it."""
    for _ in range(100):
        orphans = {*_children()} - ended
        if not orphans:
            return
        for pid in orphans:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass

