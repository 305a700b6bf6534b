"""A warm process that forks `kb` and judges: PyTorch is imported once for many, and not two seconds for each.

``KB`` is the command. Every run of it is a process of its own with the environment, folder and standard streams of its
caller. Judges that it starts are forks of it, and those of a test's own process are forks of the warm one. Tests of
starting, of killing or of what a command imports run ``REAL_KB``. Judges of the warm process end sampling early where a
run leaves the precision of times to the default: a test that looks at times names it, as ``--cv 2%``.
"""

import atexit
import contextlib
import functools
import importlib
import io
import json
import os
import select
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
REAL_KB = [sys.executable, "-m", "kernelbench"]
KB = [sys.executable, "-I", "-S", str(Path(__file__).with_name("warm_client.py"))]
ADDRESS = "KB_WARM"

_WARM = ("harness.judge.main", "harness.worker.forkserver", "kernelbench.evaluator.process")
_LOADED = ("kernelbench.cli", "kernelbench.api", "kernelbench.evaluation.directory", "harness.judge.server", *_WARM)
_MOST_BYTES, _DESCRIPTORS = 1 << 18, 3


@contextlib.contextmanager
def serving():
    """Serve ``KB`` of this process and its children."""
    with tempfile.TemporaryDirectory(prefix="kb-warm-") as folder:
        address = os.path.join(folder, "socket")
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listener.bind(address)
        listener.listen(64)
        ours, theirs = socket.socketpair()
        command = [sys.executable, __file__, str(listener.fileno()), str(theirs.fileno())]
        environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_WAIT_POLICY": "PASSIVE"}
        with subprocess.Popen(command, pass_fds=[listener.fileno(), theirs.fileno()], env=environment) as server:
            listener.close(), theirs.close()
            os.environ[ADDRESS] = address
            try:
                yield
            finally:
                del os.environ[ADDRESS]
                ours.close()
                server.wait()


class _Fork(subprocess.Popen):
    """A fork of this process, used as what was started."""

    def __init__(self, pid):
        self.pid, self.returncode, self.args = pid, None, []
        self.stdin = self.stdout = self.stderr = None
        self._child_created, self._waitpid_lock = True, threading.Lock()


class _Served:
    """A process that the warm one forked for this one, used as what was started."""

    def __init__(self, connection, pid):
        self._connection, self.pid, self.returncode = connection, pid, None

    def poll(self):
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout=None):
        if self.returncode is None:
            if not select.select([self._connection], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("warm", timeout)
            ended = self._connection.recv(_MOST_BYTES)  # nothing where the warm process is gone, and its forks with it
            self.returncode = json.loads(ended)["code"] if ended else -signal.SIGKILL
            self._connection.close()
        return self.returncode

    def send_signal(self, number):
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)

    def terminate(self):
        self.send_signal(signal.SIGTERM)


def start_server(module, connection, bound=True, output=None):
    """Be ``harness.process.spawn.start_server`` of this process, by the warm one that serves."""
    asked = {"module": module, "environment": dict(os.environ)}
    warm = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    warm.connect(os.environ[ADDRESS])
    streams = [1, 2] if output is None else [output, output]
    socket.send_fds(warm, [json.dumps(asked).encode()], [*streams, connection.fileno()])
    connection.close()
    return _Served(warm, json.loads(warm.recv(_MOST_BYTES))["pid"])


def _fork_server(real, module, connection, bound=True, output=None):
    """``harness.process.spawn.start_server``, by a fork where the process has what the server imports."""
    from harness.process import spawn

    if module not in _WARM:
        return real(module, connection, bound, output)

    def fork():
        pid = os.fork()
        if pid == 0:
            _run(lambda: _serve(module, connection.detach(), [output or 1, output or 2]))
        return pid

    pid = spawn._starter(os.getpid()).submit(fork).result() if bound else fork()
    connection.close()
    return _Fork(pid)


def _serve(module, connection, streams):
    """Be a server, in a fork of this process."""
    from harness.process import spawn

    os.setsid()
    _become(spawn.environment())
    for number, descriptor in enumerate([os.open(os.devnull, os.O_RDONLY), *streams]):
        os.dup2(descriptor, number)
    spawn.close_all_but([connection])
    _default_signals()
    importlib.import_module(module).serve(connection)


def _serve_another(asked, descriptors):
    """Be a server for a process elsewhere."""
    _become(asked["environment"])
    *streams, connection = descriptors
    _serve(asked["module"], connection, streams)


def _command(asked, descriptors):
    """Be the command, in a fork of the warm process."""
    from harness.process.spawn import close_all_but

    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
    close_all_but([])
    sys.stdin = open(0, closefd=False)
    sys.stdout = io.TextIOWrapper(open(1, "wb", closefd=False), "utf-8", line_buffering=os.isatty(1))
    sys.stderr = io.TextIOWrapper(open(2, "wb", 0, closefd=False), "utf-8", "backslashreplace", write_through=True)
    _become(asked["environment"])
    os.chdir(asked["folder"])
    sys.argv = ["kb", *asked["arguments"]]
    _default_signals()
    from kernelbench.cli import main

    main(prog_name="kb")


def _become(environment):
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None  # the warm process's


def _default_signals():
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _run(function):
    """Run the whole life of a forked process; never returns."""
    code = 1
    try:
        function()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        if code == 1 and isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException):
            atexit._run_exitfuncs()
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
        os._exit(code)


def _serve_commands(listener, control):
    """Fork a command for each connection until ``control`` closes; one whose caller is gone is killed."""
    selector = selectors.DefaultSelector()
    for one in (listener, control):
        selector.register(one, selectors.EVENT_READ)
    commands = {}  # connection -> pid
    while True:
        for key, _ in selector.select():
            one = key.fileobj
            if one is control:
                return
            if one is listener:
                selector.register(listener.accept()[0], selectors.EVENT_READ)
            elif key.data is not None:  # a command has ended
                selector.unregister(one)
                os.close(one)
                _, status = os.waitpid(commands.pop(key.data), 0)
                with contextlib.suppress(OSError):
                    key.data.send(json.dumps({"code": os.waitstatus_to_exitcode(status)}).encode())
                with contextlib.suppress(KeyError):
                    selector.unregister(key.data)
                key.data.close()
            elif one in commands:  # its caller was killed
                selector.unregister(one)
                os.kill(commands[one], signal.SIGKILL)
            else:
                data, descriptors, _, _ = socket.recv_fds(one, _MOST_BYTES, _DESCRIPTORS)
                if not data:
                    selector.unregister(one)
                    one.close()
                    continue
                asked = json.loads(data)
                pid = os.fork()
                if pid == 0:
                    life = _serve_another if "module" in asked else _command
                    _run(functools.partial(life, asked, descriptors))
                for descriptor in descriptors:
                    os.close(descriptor)
                commands[one] = pid
                selector.register(os.pidfd_open(pid), selectors.EVENT_READ, one)
                one.send(json.dumps({"pid": pid}).encode())


def _less_precise(conditions):
    """Return ``Conditions`` whose default precision is that of tests."""
    from quick import QUICK_CV

    from harness.timing.convergence import CV_TARGET

    def make(device, cv_target, **others):
        return conditions(device, cv_target=QUICK_CV if cv_target == CV_TARGET else cv_target, **others)

    return make


def _main():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    from harness.process import spawn
    from harness.process.procfs import end_with_parent

    end_with_parent()
    real = spawn.start_server
    spawn.start_server = lambda *arguments, **named: _fork_server(real, *arguments, **named)
    for module in _LOADED:
        importlib.import_module(module)
    from harness.judge import server
    from harness.worker.forkserver import warm_up

    server.Conditions = _less_precise(server.Conditions)
    warm_up()
    listener, control = (socket.socket(fileno=int(fd)) for fd in sys.argv[1:])
    _serve_commands(listener, control)


if __name__ == "__main__":
    _main()
