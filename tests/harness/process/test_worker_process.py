"""Workers: started warm, watched from outside, gone without a trace."""

import contextlib
import fcntl
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import time

import pytest

from harness.faults import MachineFault
from harness.process import worker_process, worker_rest
from harness.process.fork_server import ForkServer
from harness.process.procfs import at_rest, descendants, identities, tasks_that_stop
from harness.process.spawn import ROOT, scrubbed_environment
from harness.process.worker_process import Worker, WorkerOptions
from harness.result import CandidateFailure, Status

GIB = 1 << 30


def import_source(server, tmp_path, source, timeout_s=20, memory_bytes=2 * GIB):
    """Have a fresh worker import ``source``, which then does what it does; what it printed."""
    path = tmp_path / "module.py"
    path.write_text(source)
    with server.fork({}, memory_bytes, readable=[path]) as worker:
        worker.request({"op": "import", "solution": str(path)}, timeout_s)
    return worker.output.decode()


def failing(server, tmp_path, source, **limits):
    with pytest.raises(CandidateFailure) as caught:
        import_source(server, tmp_path, source, **limits)
    return caught.value


@pytest.mark.parametrize(
    "source, message",
    [
        ("import os; os._exit(0)", "exited with code 0"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "killed by SIGKILL"),
        ("import ctypes; ctypes.string_at(0)", "killed by SIGSEGV"),
    ],
)
def test_death_is_crashed_whatever_the_exit_code(server, tmp_path, source, message):
    error = failing(server, tmp_path, source)
    assert error.status is Status.CRASHED and message in error.message


def test_the_stack_of_a_segfault_names_the_candidates_line(server, tmp_path):
    error = failing(server, tmp_path, "import ctypes\n\n\nctypes.string_at(0)")
    assert 'module.py", line 4' in error.message


def test_an_endless_loop_is_a_timeout(server, tmp_path):
    assert server.isolation, "the server is warm before the clock starts"
    begin = time.monotonic()
    assert failing(server, tmp_path, "while True: pass", timeout_s=1).status is Status.TIMEOUT
    assert time.monotonic() - begin < 5


def test_memory_is_limited(server, tmp_path):
    source = "hog = []\nwhile True: hog.append(bytearray(64 << 20))"
    error = failing(server, tmp_path, source, memory_bytes=GIB)
    assert error.status is Status.OUT_OF_MEMORY and "1.1 GB" in error.message


def test_who_takes_memory_in_small_steps_is_seen_too(server, tmp_path):
    path = tmp_path / "module.py"
    path.write_text("import torch\ntorch.hog = [*getattr(torch, 'hog', []), bytearray(80 << 20)]\nclass ModelNew: pass")
    with server.fork({}, GIB, readable=[path]) as worker, pytest.raises(CandidateFailure) as caught:
        for _ in range(40):
            worker.request({"op": "import", "solution": str(path)}, 20)
            time.sleep(0.05)
    assert caught.value.status is Status.OUT_OF_MEMORY


def test_page_tables_count_as_memory(server, tmp_path):
    """A page that was only read is nobody's, but the table in which it stands is its reader's."""
    source = """
import ctypes, mmap
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
for _ in range(40):
    place = libc.mmap(None, 64 << 30, 1, 0x4022, -1, 0)
    libc.madvise(place, 64 << 30, 15)  # no huge pages
    for offset in range(0, 64 << 30, 2 << 20): ctypes.c_char.from_address(place + offset).value
while True: pass
"""
    error = failing(server, tmp_path, source, timeout_s=20, memory_bytes=400 << 20)
    assert error.status is Status.OUT_OF_MEMORY, error.message


def test_the_buffers_of_sockets_count_as_memory(server, tmp_path):
    source = """
import socket, time
pairs = [socket.socketpair() for _ in range(1500)]
for one, _ in pairs:
    one.setblocking(False)
    try:
        while True: one.send(bytes(60_000))
    except BlockingIOError: pass
while True: time.sleep(1)
"""
    error = failing(server, tmp_path, source, memory_bytes=800 << 20)
    assert error.status is Status.OUT_OF_MEMORY, error.message


@pytest.mark.parametrize("files", [50, 5])
def test_a_folder_that_is_kept_counts_and_goes_when_it_is_too_full(server, tmp_path, monkeypatch, files):
    monkeypatch.setattr("harness.process.owned_folders._MAX_KEPT_FILES", 20)
    kept = tmp_path / "kept"
    kept.mkdir()
    path = tmp_path / "module.py"
    path.write_text(f"for i in range({files}): open({str(kept)!r} + f'/{{i}}', 'w').close()\nclass ModelNew: pass\n")
    with server.fork({}, GIB, readable=[path], writable=[kept]) as worker:
        worker.request({"op": "import", "solution": str(path)}, 20)
    assert kept.exists() == (files == 5) and (worker.left["files"] > 20) == (files == 50)


def test_a_folder_that_is_kept_is_in_the_hands_of_one_worker(server, tmp_path):
    """Two evaluations of one source shared a folder, and with it work: the second computed half of the first's."""
    kept = tmp_path / "kept"
    kept.mkdir()
    path = tmp_path / "module.py"
    path.write_text("import os; open(os.environ['KEPT'] + '/mine', 'x').close()\nclass ModelNew: pass\n")

    def fork():
        return server.fork({"KEPT": str(kept)}, GIB, readable=[path], writable=[kept])

    with fork() as one, fork() as two:
        for worker in (one, two):
            worker.request({"op": "import", "solution": str(path)}, 20)
        assert (kept / "mine").exists() and list(two.scratch.rglob("mine"))
    (kept / "mine").unlink()
    with fork() as third:
        third.request({"op": "import", "solution": str(path)}, 20)
    assert (kept / "mine").exists()


def test_too_many_files_in_a_folder_that_is_kept_end_the_candidate(server, tmp_path, monkeypatch):
    monkeypatch.setattr("harness.process.worker_limits.MAX_FILES", 50)
    kept = tmp_path / "kept"
    kept.mkdir()
    path = tmp_path / "module.py"
    path.write_text(f"for i in range(60): open({str(kept)!r} + f'/{{i}}', 'w').close()\nwhile True: pass\n")
    with server.fork({}, GIB, readable=[path], writable=[kept]) as worker, pytest.raises(CandidateFailure) as caught:
        worker.request({"op": "import", "solution": str(path)}, 20)
    assert caught.value.status is Status.CRASHED and "it wrote " in caught.value.message


def test_a_flood_of_output_is_cut_and_kept_at_its_end(server, tmp_path):
    error = failing(server, tmp_path, "import os\nprint('x' * 10_000_000); print('the end', flush=True); os._exit(3)")
    assert error.message.rstrip().endswith("the end") and len(error.message) < 11_000 and len(error.log) <= 64 << 10


IN_THE_KERNEL = """
import ctypes, os, time, torch
class ModelNew(torch.nn.Module): pass
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
READ, PRIVATE_ANONYMOUS_NORESERVE, NOHUGEPAGE, POPULATE_READ = 1, 0x4022, 15, 22
if os.fork() == 0:
    size = {gib} << 30
    memory = libc.mmap(None, size, READ, PRIVATE_ANONYMOUS_NORESERVE, -1, 0)
    libc.madvise(memory, size, NOHUGEPAGE)
    libc.madvise(memory, size, POPULATE_READ)  # of the one page of zeros: no memory, but time
    os._exit(0)
time.sleep(0.2)
"""


@contextlib.contextmanager
def stopped_in_the_kernel(server, tmp_path, gib):
    """A worker that has answered while a child of it is in a system call for as long as so much memory takes."""
    path = tmp_path / "module.py"
    path.write_text(IN_THE_KERNEL.format(gib=gib))
    with server.fork({}, 2 * GIB, readable=[path]) as worker:
        worker.request({"op": "import", "solution": str(path)}, 20)
        yield worker


def test_the_judge_waits_for_a_system_call_that_was_under_way_when_its_process_was_stopped(server, tmp_path):
    with stopped_in_the_kernel(server, tmp_path, gib=6) as worker:
        worker.rest()
        assert at_rest(descendants(worker._pid))


def test_who_stays_in_a_system_call_is_ended(server, tmp_path):
    with stopped_in_the_kernel(server, tmp_path, gib=1024) as worker:
        if at_rest(descendants(worker._pid)):
            pytest.skip("this kernel populates no memory on demand")
        with pytest.raises(CandidateFailure, match=r"still runs \(state [DR]+\)") as caught:
            worker.rest()
    assert caught.value.status is Status.CRASHED


WAKES_ITSELF = """
import os, signal, threading
def work():
    while True: pass
{start}
signal.signal(signal.SIGCONT, lambda *_: {woken})
class ModelNew: pass
"""


@pytest.mark.parametrize(
    "start, woken",
    [
        ("", "(sum(range(1_000_000)), os.kill(os.getpid(), signal.SIGSTOP))"),
        ("threading.Thread(target=work, daemon=True).start()", "None"),
        ("", "os.fork() or os._exit(0)"),
    ],
    ids=["for a moment", "a thread works on", "to have a child"],
)
def test_whoever_is_continued_when_it_should_be_stopped_is_rejected(server, tmp_path, start, woken):
    path = tmp_path / "module.py"
    path.write_text(WAKES_ITSELF.format(start=start, woken=woken))
    with server.fork({}, 2 * GIB, readable=[path]) as worker:
        worker.request({"op": "import", "solution": str(path)}, 20)
        with pytest.raises(CandidateFailure) as caught:
            worker.rest()
            os.kill(worker._pid, signal.SIGCONT)  # as something else on the machine could be made to do
            time.sleep(0.5)
            worker.request({"op": "trim"}, 20)
    assert (caught.value.status, caught.value.rule) == (Status.REJECTED, "runs_unasked")


@pytest.mark.parametrize("name", [b"\xff", b"a\rb", b"a) R (b", b"\n\\"])
def test_a_process_may_have_any_name(server, tmp_path, name):
    path = tmp_path / "module.py"
    path.write_text(
        f"import ctypes, time\nctypes.CDLL(None).prctl(15, {name!r}, 0, 0, 0)\ntime.sleep(0.3)\nclass ModelNew: pass\n"
    )
    with server.fork({}, 2 * GIB, readable=[path]) as worker:
        for _ in range(2):
            assert worker.request({"op": "import", "solution": str(path)}, 20) == {"ok": True}
            worker.rest()


@pytest.mark.parametrize("look_s", [0.0, 0.02])
def test_who_takes_long_to_look_at_has_worked_until_it_was_seen_at_rest(server, tmp_path, monkeypatch, look_s):
    """Behind a thousand dead processes one ran on after the signal and was gone before it was looked at."""
    path = tmp_path / "module.py"
    path.write_text("class ModelNew: pass\n")
    with server.fork({}, 2 * GIB, readable=[path]) as worker:
        worker.request({"op": "import", "solution": str(path)}, 20)
        worker.rest()
        monkeypatch.setattr(worker_rest, "identities", lambda of: time.sleep(look_s) or identities(of))
        worked = []
        for _ in range(5):
            worker.request({"op": "trim"}, 20)
            stopped = time.perf_counter() - look_s
            worked.append(worker.rest() - stopped)
    assert (min(worked) > 0.01) == (look_s > 0)


def test_who_rests_is_asked_again(server, tmp_path):
    path = tmp_path / "module.py"
    path.write_text("import subprocess\nsubprocess.Popen(['sleep', '60'])\nclass ModelNew: pass\n")
    with server.fork({}, 2 * GIB, readable=[path]) as worker:
        for _ in range(3):
            assert worker.request({"op": "import", "solution": str(path)}, 20) == {"ok": True}
            worker.rest()
            time.sleep(0.1)


def test_sys_exit_is_no_way_out(server, tmp_path):
    error = failing(server, tmp_path, "raise SystemExit(0)")
    assert error.status is Status.LOAD_ERROR and "SystemExit" in error.message


def test_children_of_a_worker_die_with_it_even_in_a_session_of_their_own(server, tmp_path):
    source = """
import os, subprocess
children = [subprocess.Popen(["sleep", "300"], start_new_session=new).pid for new in (False, True)]
print(*children)
class ModelNew: pass
"""
    pids = [int(pid) for pid in import_source(server, tmp_path, source).split()]
    deadline = time.monotonic() + 5
    while any(os.path.exists(f"/proc/{pid}") for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)


@pytest.mark.parametrize("way", ["os._exit(3)", "os.kill(os.getpid(), 9)", "raise SystemExit"])
def test_what_a_worker_leaves_is_counted_and_gone_when_it_is_closed_however_it_ends(server, tmp_path, way):
    """Its children were dying still, with memory that the next candidate needs, and counted as none."""
    (path := tmp_path / "module.py").write_text(f"""
import os, subprocess, sys
hold = "fd = __import__('os').memfd_create('x'); [__import__('os').write(fd, bytes(1 << 24)) for _ in range(40)]"
child = subprocess.Popen([sys.executable, "-c", hold + "; print(flush=True); input()"], stdin=-1, stdout=-1)
child.stdout.readline()
print(child.pid, subprocess.Popen(["sh", "-c", "sleep 60; true"]).pid, flush=True)
subprocess.run(["true"])
{way}
""")
    with pytest.raises(CandidateFailure), server.fork({}, 2 * GIB, readable=[path]) as worker:
        worker.request({"op": "import", "solution": str(path)}, 20)
    assert not any(map(tasks_that_stop, map(int, worker.output.split()[:2])))
    assert worker.left["processes"] in (2, 3), "the shell, and what it may have started by then"


def test_the_number_of_a_worker_is_nobody_elses_until_it_is_closed(server):
    """It ended unseen and let numbers wrap: what the judge then killed was a job of the user's."""
    with server.fork({}, GIB) as worker:
        (began,) = identities([worker._pid])
        os.kill(worker._pid, signal.SIGKILL)
        assert select.select([worker._status_fd], [], [], 20)[0], "its end is told"
        time.sleep(0.2)
        assert identities([worker._pid]) == {began}
    deadline = time.monotonic() + 10
    while identities([began[0]]) == {began} and time.monotonic() < deadline:
        time.sleep(0.01)
    assert identities([began[0]]) != {began}


def test_each_worker_has_a_fresh_directory_that_goes_with_it(server, tmp_path):
    source = """
import os
print(os.getcwd())
folder = os.getcwd()
for _ in range(1200):  # deeper than Python's recursion limit
    os.mkdir("n" * 40); os.chdir("n" * 40)
open("litter", "w").write("x")
os.chmod(".", 0)
class ModelNew: pass
"""
    folder = import_source(server, tmp_path, source).strip()
    assert "kb-" in folder and not os.path.exists(folder)


def test_the_environment_is_scrubbed(server, tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET_TOKEN", "42")
    monkeypatch.setenv("LD_PRELOAD", "/nowhere.so")
    environment = scrubbed_environment(str(tmp_path))
    assert "SECRET_TOKEN" not in environment and "LD_PRELOAD" not in environment
    assert environment["HOME"] == environment["TMPDIR"] == str(tmp_path)


GARBAGE = """
import gc, json, socket, struct
channel = next(o for o in gc.get_objects() if type(o) is socket.socket and o.fileno() >= 0)
channel.sendall({data!r})
while True: pass
"""


@pytest.mark.parametrize(
    "data",
    [b"\xff" * 64, struct.pack("!I", 5) + b"hello", struct.pack("!I", 2) + b"[]"],
    ids=["too long", "no JSON", "no object"],
)
def test_forged_garbage_is_the_candidates_failure(server, tmp_path, data):
    error = failing(server, tmp_path, GARBAGE.format(data=data))
    assert error.status is Status.CRASHED and "garbage" in error.message


@pytest.mark.timeout(30)
def test_who_takes_its_output_back_does_not_have_the_judge_wait(server, tmp_path):
    """A byte that a candidate took back, between look and reading, was waited for: no limit held meanwhile."""
    path = tmp_path / "module.py"
    path.write_text("class ModelNew: pass\n")
    with server.fork({}, GIB, readable=[path]) as worker:
        worker.request({"op": "import", "solution": str(path)}, 20)
        worker._take_output()  # as if it had been told that there is something


URGENT = """
import gc, socket, time
channel = next(o for o in gc.get_objects() if type(o) is socket.socket and o.fileno() >= 0)
for _ in range(3):
    channel.send(b"x", socket.MSG_OOB)
    time.sleep(0.3)
raise ValueError("its own")
"""


def test_urgent_data_is_no_fault_of_the_machine(server, tmp_path):
    """The judge failed over a byte that the system tells of and does not give: a wrong result had no verdict."""
    error = failing(server, tmp_path, URGENT)
    assert error.status in (Status.LOAD_ERROR, Status.CRASHED), error.message


def test_a_forged_status_cannot_be_ok(server, tmp_path):
    body = json.dumps({"error": {"status": "ok", "message": "fine"}}).encode()
    error = failing(server, tmp_path, GARBAGE.format(data=struct.pack("!I", len(body)) + body))
    assert error.status is Status.RUNTIME_ERROR


@pytest.mark.slow
def test_the_server_ends_its_workers_when_it_goes():
    with ForkServer() as own:
        worker = own.fork({}, GIB)
        pid = worker._pid
        assert os.path.exists(f"/proc/{pid}")
    deadline = time.monotonic() + 5
    while os.path.exists(f"/proc/{pid}") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not os.path.exists(f"/proc/{pid}")
    worker.close()


@pytest.mark.parametrize("background", [False, True])
def test_a_worker_in_the_background_leaves_the_cores_to_others(server, tmp_path, background):
    path = tmp_path / "module.py"
    path.write_text("import os; print(os.nice(0))\nclass ModelNew: pass")
    with server.fork({}, GIB, readable=[path], background=background) as worker:
        worker.request({"op": "import", "solution": str(path)}, 20)
        shares_a_session = os.getsid(worker._pid) == os.getsid(server._process.pid)
        own_group = os.getpgid(worker._pid) == worker._pid
    own = os.nice(0)
    assert int(worker.output) == (min(19, own + 10) if background else own)
    assert own_group and shares_a_session == background


def test_many_workers_leave_no_descriptors(server, tmp_path):
    def count():
        return len(os.listdir("/proc/self/fd"))

    import_source(server, tmp_path, "class ModelNew: pass")
    before = count()
    for _ in range(20):
        import_source(server, tmp_path, "class ModelNew: pass")
    assert count() == before


def test_a_socket_is_all_that_a_worker_inherits(server, tmp_path):
    """Nothing of the judge's: no log, no control socket of the fork server."""
    source = """
import os
paths = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
print(*(os.readlink(path) for path in paths if os.path.lexists(path)), sep="\\n")
class ModelNew: pass
"""
    lines = import_source(server, tmp_path, source).splitlines()
    sockets = [line for line in lines if line.startswith("socket:")]
    assert len(sockets) == 1


SPLIT = """
import sys, time
from pathlib import Path
from harness.process.fork_server import ForkServer
with ForkServer(split=True) as server, server.fork({}, 1 << 30, readable=[Path(sys.argv[1])]) as worker:
    worker.request({"op": "import", "solution": sys.argv[1]}, 60)
    print(server._process.pid, worker._pid, (worker.scratch / "found").read_text(), flush=True)
    time.sleep(60)
"""
SOCKETS = """
import gc, socket
found = [o.fileno() for o in gc.get_objects() if isinstance(o, socket.socket) and o.fileno() >= 0]
open("found", "w").write(str(found))
class ModelNew: pass
"""


@pytest.fixture
def split(tmp_path):
    """A process whose fork server is a fork of itself, and has a worker; what it says of them."""
    path = tmp_path / "module.py"
    path.write_text(SOCKETS)
    command = [sys.executable, "-c", SPLIT, str(path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        yield process, process.stdout.readline().split(maxsplit=2)
        process.kill()


def test_a_worker_of_a_server_that_was_split_off_knows_no_socket_but_its_own(split):
    _, (_, _, sockets) = split
    assert len(json.loads(sockets)) == 1


@pytest.mark.slow
def test_a_server_that_was_split_off_ends_with_its_process(split):
    process, pids = split
    assert all(os.path.exists(f"/proc/{pid}") for pid in pids[:2])
    process.kill()
    deadline = time.monotonic() + 5
    while any(os.path.exists(f"/proc/{pid}") for pid in pids[:2]) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids[:2])


def test_a_worker_without_a_candidate_has_as_many_threads_as_it_is_told(server):
    with server.fork({}, GIB) as worker:
        for threads in (1, 4, 2):
            worker.request({"op": "hold", "threads": threads}, 20)
            worker.rest()
            deadline = time.monotonic() + 5
            # who is told to end does so when it runs
            while worker.rested.threads != threads and time.monotonic() < deadline:
                worker.request({"op": "rehearse", "seeds": [1]}, 20)
                worker.rest()
            assert worker.rested.threads == threads
            answer = worker.request({"op": "rehearse", "seeds": [1, 2]}, 20)
            assert len(answer["addresses"]) == len(answer["orders"]) == 2


def test_a_worker_says_what_python_took_to_answer_without_a_call(server):
    with server.fork({}, GIB) as worker:
        begin = time.perf_counter()
        answer = worker.request({"op": "rehearse", "seeds": [1]}, 20)
        took_ms = (time.perf_counter() - begin) * 1e3
        assert 0 < answer["cpu_ms"] <= answer["wall_ms"] + 0.1 < took_ms + 0.1


def test_a_request_that_fits_is_there_before_the_worker_runs(server, monkeypatch):
    """While it was sent a handler of SIGCONT worked, unseen by the judge's clock."""
    unread = []

    def signal_and_look(number):
        unread.append((number, fcntl.ioctl(worker._channel.fileno(), termios.TIOCOUTQ, bytes(4))))
        send(number)

    with server.fork({}, GIB) as worker:
        worker.request({"op": "hold", "threads": 1}, 20)
        worker.rest()
        send = worker._signal
        monkeypatch.setattr(worker, "_signal", signal_and_look)
        worker.request({"op": "rehearse", "seeds": [1]}, 20)
    at_begin, at_end = (int.from_bytes(data, sys.byteorder) for _, data in unread[:2])
    assert [number for number, _ in unread[:2]] == [signal.SIGCONT, signal.SIGSTOP]
    assert at_begin > 0 and at_end == 0


@pytest.mark.slow
def test_a_request_that_does_not_fit_at_once_arrives_whole(server):
    with server.fork({}, GIB) as worker:
        for _ in range(2):
            answer = worker.request({"op": "rehearse", "seeds": list(range(10**15, 10**15 + 40_000))}, 20)
            assert len(answer["orders"]) == 40_000


def test_it_is_stopped_before_its_cpu_time_is_read(server, monkeypatch):
    """While that of a crowd was read, which takes long, it worked on."""
    with server.fork({}, GIB) as worker:
        worker.request({"op": "hold", "threads": 1}, 20)
        worker.rest()
        states = []

        def read(family):
            states.append(at_rest(family))
            return {}

        monkeypatch.setattr(worker_rest, "cpu_times_ns", read)
        worker.rested.stop(lambda: states.append("stop"))
        assert states[0] == "stop"


def test_what_runs_on_after_the_answer_counts_until_it_rests(server, tmp_path):
    with stopped_in_the_kernel(server, tmp_path, gib=2) as worker:
        answered = time.perf_counter()
        if at_rest(descendants(worker._pid)):
            pytest.skip("it has ended already")
        assert worker.rest() > answered


def test_a_request_may_be_longer_than_a_message_of_the_system(server, tmp_path):
    """A solution with 450 headers in a long path ended the process that forks workers, and others' workers with it."""
    folder = tmp_path
    while len(str(folder)) < 3_000:
        folder /= "d" * 200
    folder.mkdir(parents=True)
    readable = [folder / f"{number}.h" for number in range(500)]
    for path in readable:
        path.touch()
    with server.fork({}, GIB) as other, server.fork({}, GIB, readable=readable) as worker:
        assert worker.request({"op": "hold", "threads": 1}, 20) == {"ok": True}
        assert other.request({"op": "hold", "threads": 1}, 20) == {"ok": True}


LEAVES_A_CHILD = """
import os, time
if os.fork() == 0:
    while True:
        time.sleep(0.01)
"""


@pytest.mark.parametrize("how", ["killed", "failed"])
def test_nothing_of_a_worker_outlives_the_process_that_forked_it(tmp_path, how):
    path = tmp_path / "module.py"
    path.write_text(LEAVES_A_CHILD)
    with ForkServer() as server, server.fork({}, 2 * GIB, readable=[path]) as worker:
        worker.request({"op": "import", "solution": str(path)}, 20)
        family = descendants(worker._pid)
        assert len(family) == 2
        if how == "killed":
            os.kill(server._process.pid, signal.SIGKILL)
        else:
            with open(os.devnull, "rb") as nothing:
                socket.send_fds(server._control, [b"?"], [nothing.fileno()])
        server._process.wait(20)
        with pytest.raises(MachineFault):
            worker.request({"op": "hold", "threads": 1}, 20)
        deadline = time.monotonic() + 10
        while any(map(tasks_that_stop, family)) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not any(map(tasks_that_stop, family))


def test_a_worker_that_could_not_be_started_leaves_no_descriptor():
    def start(*_):
        raise OSError("no process")

    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with pytest.raises(OSError, match="no process"):
            Worker(start, WorkerOptions({}, 1 << 30, []))
    assert len(os.listdir("/proc/self/fd")) == before


def test_who_did_not_end_at_our_first_signal_was_killed_by_nobody_else(server, monkeypatch):
    """Our second look took it for somebody else's kill, and the candidate was evaluated once more."""
    worker = server.fork({}, GIB)
    with monkeypatch.context() as patch:
        patch.setattr(worker_process, "GONE_S", 0.0)
        with pytest.raises((MachineFault, CandidateFailure), match="SIGKILL"):
            worker.end()
    worker.close()
    assert worker.killed_by == ""
