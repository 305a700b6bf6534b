"""Start a process that serves on a socket: in an interpreter of its own, or as a fork of this one."""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import os
import re
import select
import signal
import socket
import subprocess
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness.process.sandbox.import_path import WORK, import_path, working_directory

# What workers may see of our environment; everything else is dropped. Of the variables that change numbers, launches or
# threads a judge has only these too, as otherwise its reference would run by other rules than the candidate.
_PASSED_TO_WORKERS = (
    "PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TZ", "CC", "CXX", "CUDA_HOME", "CUDA_PATH", "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES", "OMP_NUM_THREADS", "MKL_NUM_THREADS",
    "TRITON_INTERPRET", "TRITON_LIBCUDA_PATH", "TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH",
)  # fmt: skip
_FOLDERS = ("KERNELBENCH_CACHE", "HOME", "TMPDIR", "TEMP", "TMP")
# What servers may know besides: paths, caches and names. Workers are forked from some, and can read all that these
# were started with, so no key to anything is among it.
_PASSED_TO_SERVERS = (
    *_PASSED_TO_WORKERS, *_FOLDERS, "KERNELBENCH_CACHE_GB", "KERNELBENCH_WORK", "LC_CTYPE", "LC_MESSAGES",
    "XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "CUDA_CACHE_PATH", "CUTLASS_PATH", "LIBRARY_PATH", "CPATH", "USER", "LOGNAME",
    "MAX_JOBS", "VIRTUAL_ENV",
)  # fmt: skip
_WITH_A_PASSWORD = re.compile(r"://.*@|\A[^/:\s]+:.*@", re.DOTALL)  # an address, also one without a scheme
_START_S = 60.0  # for a new process; what it imports is no part of that
ROOT = Path(__file__).resolve().parents[2]

# Threads of PyTorch that have nothing to do must not spin while the other side is timed. But between the loops of one
# call they have to, for some 0.02 ms: where they slept, small LSTMs took three times as long (3/36, 2026-11-28). No
# longer: Linux in a virtual machine wakes a second thread on the core of the first, which spins until it sleeps. With
# 10000 honest calls of two threads took 0.5 to 1 ms by the judge's clock, with 1000 0.2 to 0.3 (1/19, 2026-11-29).
_THREADS = {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "1000"}


def start_server(
    module: str, connection: socket.socket, bound: bool = True, output: int | None = None
) -> subprocess.Popen:
    """Run ``module.serve`` on ``connection`` in an interpreter and a session of its own; closes our copy of it.

    What it prints goes to the descriptor ``output``, by default where this process prints.
    A ``bound`` server may ask the kernel to end it with its parent. The kernel means the thread that started
    it, so a thread of this process starts it that lasts as long as the process.
    """
    # -I and an explicit path: neither environment nor working directory decides what is imported
    path = [str(ROOT), *import_path()]
    # tearing PyTorch down takes a second and frees nothing that the end of a process does not
    start = (
        f"import os, signal, sys; sys.path[:] = {path!r}\nfrom {module} import serve\n"
        "signal.signal(signal.SIGCHLD, signal.SIG_DFL)\n"  # ends of children that are ignored are told to nobody
        # whom it answers may end meanwhile
        f"try: serve({connection.fileno()})\nexcept (EOFError, BrokenPipeError, ConnectionResetError): pass\n"
        "sys.stdout.flush(); sys.stderr.flush(); os._exit(0)"
    )
    popen = functools.partial(
        subprocess.Popen,
        [*_interpreter(), start],
        env=environment() | _THREADS | {WORK: os.environ.get(WORK) or working_directory()},
        pass_fds=[connection.fileno()],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        start_new_session=True,
    )
    process = _starter(os.getpid()).submit(popen).result(_START_S) if bound else popen()
    connection.close()
    return process


def _interpreter() -> list[str]:
    """Return how Python begins to run a text. It reads names of files as this process does, which a locale decides."""
    return [sys.executable, "-I", "-X", f"utf8={sys.flags.utf8_mode}", "-c"]


def command_of(module: str) -> list[str]:
    """Return the command that runs ``module`` as a program in an interpreter of its own; arguments follow.

    Neither the environment nor the working directory decides what is imported.
    """
    path = [str(ROOT), *import_path()]
    start = f"import runpy, sys; sys.path[:] = {path!r}; runpy.run_module({module!r}, run_name='__main__')"
    return [*_interpreter(), start]


def pipe_of_others() -> tuple[int, int]:
    """A pipe for what an untrusted process writes: reading ``what_is_there`` never waits."""
    ours, theirs = os.pipe()
    os.set_blocking(ours, False)
    return ours, theirs


def what_is_there(pipe: int, most: int) -> bytes | None:
    """Return what can be read now, b'' at the end; None where somebody else, who opened it too, was first."""
    try:
        return os.read(pipe, most)
    except BlockingIOError:
        return None


def environment() -> dict[str, str]:
    """Return what a server is started with of this process's environment.

    A server works in another folder, so that a folder named by a part of its path would be another one.
    """
    return {
        name: os.path.abspath(value) if name in _FOLDERS and value else value
        for name, value in os.environ.items()
        if name in _PASSED_TO_SERVERS and not _WITH_A_PASSWORD.search(value)
    }


def scrubbed_environment(scratch: str) -> dict[str, str]:
    """Return the environment of an untrusted process: a short list of ours, its home in ``scratch``."""
    env = {name: os.environ[name] for name in _PASSED_TO_WORKERS if name in os.environ}
    # ninja, which torch's extensions need, is installed beside the interpreter
    env["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), env.get("PATH", os.defpath)])
    # the driver's cache would lie in its home, which is new every time
    driver = {"CUDA_CACHE_DISABLE": "1"}
    return env | driver | {"HOME": scratch, "TMPDIR": scratch, "PYTHONDONTWRITEBYTECODE": "1"}


@functools.cache
def _starter(process: int) -> ThreadPoolExecutor:
    """The thread that starts processes; one that was forked from another has none of its parent's threads."""
    return ThreadPoolExecutor(1)


def split_off(module: str, connection: socket.socket, ours: socket.socket) -> Forked:
    """Start a server in a fork of this process, which saves the imports that it has made.

    Only for a process that holds nothing yet that a candidate may not see, and no device. ``ours`` is the
    other end of ``connection``.
    """
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            ours.close()  # what the end of this process is told by
            fd = connection.detach()
            close_all_but([fd])
            importlib.import_module(module).serve(fd)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    connection.close()
    return Forked(pid)


def close_all_but(kept: list[int]) -> None:
    """Close what a fork has inherited, except standard streams and ``kept``."""
    gc.freeze()  # collected later, a socket of the parent would close what has its number by then
    for descriptor in map(int, os.listdir("/proc/self/fd")):
        if descriptor > 2 and descriptor not in kept:
            with contextlib.suppress(OSError):  # the listing's own descriptor
                os.close(descriptor)


class Forked:
    """A forked process, as far as it is used like a ``subprocess.Popen``."""

    def __init__(self, pid: int):
        self.pid = pid
        self._ended = os.pidfd_open(pid)

    def wait(self, timeout: float | None = None) -> None:
        if not select.select([self._ended], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired("fork", timeout)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
