"""The warm server: who starts it, who may call, what one call does to the next, and when it ends."""

import ast
import os
import resource
import signal
import socket
import struct
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import wait_until_gone

from kernelbench.attempt import warm_client, warm_place
from kernelbench.attempt.request import Request
from kernelbench.attempt.warm_place import NoPlace, Place
from kernelbench.attempt.warm_server import _WarmServer

pytestmark = pytest.mark.slow  # nearly each starts a server of its own

GOOD = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x): return x.clamp(min=0)\n"
HOSTILE = {
    "exits": "import os\n" + GOOD.replace("return", "os._exit(0);"),
    "kills": "import os\n" + GOOD.replace("return", "os.kill(os.getppid(), 9);"),
    "hangs": GOOD.replace("return", "\n        while True: pass\n        return"),
}


@pytest.fixture
def attempted(tmp_path, runtime):
    """Attempt a source on a warm server."""

    def attempted(source, name="1_19.py", **conditions):
        path = tmp_path / name
        path.write_text(source)
        conditions = {"device": "cpu", "timeout_s": 60, **conditions}
        return warm_client.try_file(Request(str(path), conditions=conditions))

    return attempted


def server_pid():
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(Place.here().socket))
        return struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]


def test_the_first_call_starts_a_server_and_the_next_finds_it_warm(attempted):
    attempt, record = attempted(GOOD)
    assert (attempt["status"], attempt["exit_status"], record["status"]) == ("ok", 0, "ok")
    pid = server_pid()
    attempt, record = attempted("nonsense(")
    assert attempt["status"] == "build_error" and attempt["error"]["line"] == 1 and server_pid() == pid
    attempt, record = attempted(GOOD, name="no_problem.py")
    assert (attempt["exit_status"], record) == (2, None) and "maps to no problem" in attempt["error"]["text"]
    attempt, _ = attempted(GOOD, device="tpu")
    assert attempt["exit_status"] == 3 and "'tpu' is no device" in attempt["error"]["text"]
    attempt, _ = attempted(GOOD, precision="fp8")
    assert attempt["exit_status"] == 2 and "precision must be one of" in attempt["error"]["text"]


def test_ten_callers_at_once_get_their_own_answers_from_one_server(attempted, runtime):
    sources = {f"1_19_s{n}.py": f"{'# line' * 1}\n" * n + "class ModelNew: nonsense(" for n in range(8)}
    sources |= {"1_19_s8.py": GOOD, "1_19_s9.py": GOOD.replace("clamp(min=0)", "neg()")}
    with ThreadPoolExecutor(10) as pool:
        found = dict(zip(sources, pool.map(lambda name: attempted(sources[name], name)[0], sources)))
    assert [found[f"1_19_s{n}.py"]["error"]["line"] for n in range(8)] == [n + 1 for n in range(8)]
    assert [found[f"1_19_s{n}.py"]["status"] for n in (8, 9)] == ["ok", "wrong_value"]
    assert all(attempt["file"].endswith(name) for name, attempt in found.items())
    assert len(list(runtime.glob("*.sock"))) == 1


def test_a_hostile_candidate_does_not_disturb_the_next(attempted):
    statuses = [attempted(source, timeout_s=5)[0]["status"] for source in HOSTILE.values()]
    pid = server_pid()
    assert statuses == ["crashed", "runtime_error", "timeout"]
    assert attempted(GOOD, timeout_s=5)[0]["status"] == "ok" and server_pid() == pid


def test_a_candidate_gets_neither_the_token_nor_an_answer(attempted):
    attempted("nonsense(")  # starts the server
    place = Place.here()
    spy = f"""import torch, socket, os
class ModelNew(torch.nn.Module):
    def forward(self, x):
        told = []
        for path in ({str(place.token)!r}, {str(place.log)!r}):
            try: told.append(open(path).read())
            except OSError as error: told.append(type(error).__name__)
        told += [name for name in os.environ if "TOKEN" in name]
        for guess in (b"0" * 64, b""):
            with socket.socket(socket.AF_UNIX) as connection:
                try:
                    connection.connect({str(place.socket)!r})
                    connection.sendall(guess + b'\\0\\0\\0\\2{{}}')
                    connection.shutdown(socket.SHUT_WR)
                    told.append(connection.recv(10) or "refused")
                except OSError as error: told.append(type(error).__name__)
        raise RuntimeError(repr(told))
"""
    attempt, _ = attempted(spy)
    assert attempt["status"] == "runtime_error"
    told = ast.literal_eval(attempt["error"]["text"].removeprefix("RuntimeError: "))
    assert told[:2] == ["PermissionError"] * 2 and len(told) == 4
    assert told[2:] == ["FileNotFoundError"] * 2  # it connects to nothing that has a name
    assert attempted(GOOD)[0]["status"] == "ok"


def test_a_stranger_is_refused_and_a_silent_one_is_not_waited_for(attempted):
    attempted("nonsense(")
    place = Place.here()
    assert place.token.stat().st_mode & 0o777 == 0o600 and place.socket.stat().st_mode & 0o777 == 0o600
    for greeting in (b"0" * warm_place.TOKEN_CHARACTERS, b""):
        with socket.socket(socket.AF_UNIX) as stranger:
            stranger.connect(str(place.socket))
            stranger.settimeout(30)
            stranger.sendall(greeting)
            assert stranger.recv(1) == b""


def test_a_server_that_is_killed_is_replaced_and_the_call_is_answered(attempted):
    attempted("nonsense(")
    first = server_pid()
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(attempted, GOOD)
        os.kill(first, signal.SIGKILL)
        assert call.result(120)[0]["status"] == "ok"
    assert server_pid() != first


def test_a_server_ends_when_nobody_calls(attempted, runtime, tmp_path):
    path = tmp_path / "1_19.py"
    path.write_text("nonsense(")
    warm_client.try_file(Request(str(path), conditions={"device": "cpu"}), idle_s=1)
    pid = server_pid()
    wait_until_gone(runtime)
    os.waitpid(pid, 0)  # a child of this process, as its starter: it has ended
    assert not list(runtime.glob("*.token")) and not warm_client.stop()


def served(place):
    """A listener in the place, with a new token."""
    place.write_token()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(place.socket))
    return listener


def test_a_server_that_was_replaced_leaves_its_successor_where_it_is(runtime):
    """It took socket and token of the successor away, which then ended, too."""
    place = Place.here()
    first = _WarmServer(served(place), runtime)
    place.remove()
    with served(place):
        token = place.token.read_bytes()
        first._listener.listen()
        assert first._leave() and place.socket.exists() and place.token.read_bytes() == token
    place.remove()
    last = _WarmServer(served(place), runtime)
    last._listener.listen()
    assert last._leave() and not place.socket.exists() and not place.token.exists()


CALLS = {
    "cores": lambda: os.sched_setaffinity(0, {max(os.sched_getaffinity(0))}),
    "priority": lambda: os.nice(1),
    "files": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256)),
    "size of a file": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)),
}


@pytest.mark.parametrize("call", CALLS)
def test_who_has_other_cores_limits_or_another_priority_has_another_server(runtime, call):
    """One that `taskset` or `ulimit` started judged the calls of all others, too."""
    here, (read, write) = Place.here().socket, os.pipe()
    if (pid := os.fork()) == 0:
        CALLS[call]()
        os.write(write, bytes(Place.here().socket))
        os._exit(0)
    os.waitpid(pid, 0)
    there = os.fsdecode(os.read(read, 4096))
    assert there != str(here) or call == "cores" and len(os.sched_getaffinity(0)) == 1
    assert Place.here().socket == here


def test_a_working_directory_that_is_gone_is_told(runtime, tmp_path, monkeypatch):
    """The server was said to have ended twice, which had not been asked."""
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(warm_client.ServerError, match="working directory cannot be found"):
        warm_client.try_file(Request("1_19.py", conditions={"device": "cpu"}))


def test_a_folder_that_others_may_enter_is_not_used(runtime):
    runtime.mkdir(mode=0o755)
    runtime.chmod(0o755)
    with pytest.raises(NoPlace, match="not a private folder"):
        Place.here()
    runtime.chmod(0o700)
