"""Limits of a worker on what its processes hold together."""

import contextlib
import math
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from harness.faults import MachineFault
from harness.memory.shared_tensors import shared_file
from harness.process import worker_limits
from harness.process.holdings import OpenFiles
from harness.process.procfs import read_text, unaccounted_memory_bytes
from harness.process.worker_limits import WorkerLimits
from harness.result import CandidateFailure, Status

GIB, MIB = 1 << 30, 1 << 20
HEAD = "import fcntl, mmap, os, time\n"
STAY = "\nwhile True: time.sleep(1)\n"
END = "\nclass ModelNew: pass\n"


@pytest.fixture
def run(server, tmp_path, monkeypatch):
    """Have a fresh worker run ``source`` where no control group limits it."""
    monkeypatch.setattr("harness.process.memory_cgroup.make", lambda limit: None)
    path = tmp_path / "module.py"

    def run(source, memory_bytes=2 * GIB, more=(), timeout_s=20, **options):
        path.write_text(HEAD + source)
        with server.fork({}, memory_bytes, readable=[path, *more], **options) as worker:
            worker.request({"op": "import", "solution": str(path)}, timeout_s)

    return run


def failing(run, source, **options):
    with pytest.raises(CandidateFailure) as caught:
        run(source + STAY, **options)
    return caught.value


SHARED_DESCRIPTORS = """
for _ in range(1000): os.eventfd(0)
for _ in range(10):
    if os.fork() == 0:
        while True: time.sleep(9)
"""


def test_descriptors_of_all_processes_have_a_limit(run):
    if not hasattr(os, "eventfd"):
        pytest.skip("this Python has no os.eventfd")
    error = failing(run, SHARED_DESCRIPTORS, memory_bytes=64 * GIB)
    assert (error.status, error.message) == (
        Status.CRASHED,
        "its processes have more than 8,192 descriptors open together",
    )


def test_mappings_of_all_processes_have_a_limit(run, monkeypatch):
    monkeypatch.setattr("harness.process.worker_limits._MAX_MAPPINGS", 10_000)
    source = "kept = [mmap.mmap(-1, 4096, prot=1 + i % 2) for i in range(4000)]\nos.fork(), os.fork()"
    error = failing(run, source)
    assert (error.status, error.message) == (Status.CRASHED, "its processes have more than 10,000 mappings together")


# Threads that wait for sockets, whose buffers could be full, of which nobody has a descriptor any more.
WAITS_FOR_CLOSED_SOCKETS = """
import ctypes, socket, threading
def wait(numbers):
    asked = b"".join(number.to_bytes(4, "little") + bytes(4) for number in numbers)
    ctypes.CDLL(None).poll(asked, len(numbers), -1)
for _ in range(3):
    batch = [[end.detach() for _ in range(60) for end in socket.socketpair()] for _ in range(16)]
    for numbers in batch: threading.Thread(target=wait, args=[numbers], daemon=True).start()
    time.sleep(0.7)
    for number in sum(batch, []): os.close(number)
"""


# ... and in another thread, while the first, of which alone /proc/PID/net tells, has ended.
WAITS_IN_ANOTHER_THREAD = f"""
import ctypes, threading
def wait_in_another():
{textwrap.indent(WAITS_FOR_CLOSED_SOCKETS, "    ")}
    time.sleep(60)
threading.Thread(target=wait_in_another).start()
ctypes.CDLL(None).syscall({60 if os.uname().machine == "x86_64" else 93}, 0)  # exit, of this thread
"""


@pytest.mark.parametrize("source", [WAITS_FOR_CLOSED_SOCKETS, WAITS_IN_ANOTHER_THREAD], ids=["all there", "one ended"])
def test_sockets_that_a_thread_waits_for_count_without_a_descriptor(server, run, source):
    """They held 4 GB under a limit of one, in memory that no process accounts for."""
    if "network" not in server.isolation:
        pytest.skip("this machine does not allow the layer 'network'")
    error = failing(run, source, memory_bytes=GIB)
    assert error.status is Status.OUT_OF_MEMORY and "the limit is 1.1 GB" in error.message


@pytest.mark.parametrize(
    "free, limit", [(math.inf, worker_limits._MAX_TASKS), (401, 200), (10, 64)], ids=["no limit", "some", "few"]
)
def test_a_worker_has_half_of_the_processes_that_its_user_may_have(tmp_path, monkeypatch, free, limit):
    """An honest candidate with a thread a core on 64 cores had too many where nothing limits the user's."""
    monkeypatch.setattr(worker_limits, "free_tasks", lambda: free)
    assert WorkerLimits(GIB, False, [tmp_path])._tasks == limit


PARTS = {
    "private": "kept = bytearray(b'x') * (400 << 20)\n",
    "in memory": "os.posix_fallocate(os.memfd_create('x'), 0, 300 << 20)\n",
    "given": "for fd in range(3, 64):\n"
    "    try: fcntl.fcntl(fd, fcntl.F_GET_SEALS)\n"
    "    except OSError: continue\n"
    "    if '/memfd:kb-shared' in os.readlink(f'/proc/self/fd/{fd}'): os.posix_fallocate(fd, 0, 300 << 20)\n",
}


def test_one_sum_of_all_memory_is_compared(run):
    """No part of it is beyond the limit, nor are any two."""
    given = shared_file(300 * MIB)
    error = failing(run, "".join(PARTS.values()), memory_bytes=1000 * MIB, inherit=[given])
    os.close(given)
    assert error.status is Status.OUT_OF_MEMORY and "the limit is 1.0 GB" in error.message


def test_a_file_in_memory_that_is_mapped_counts_once(run):
    source = "fd = os.memfd_create('x')\nos.truncate(fd, 400 << 20)\nview = mmap.mmap(fd, 400 << 20)\n"
    run(source + "view[:] = bytes(1) * len(view)\ntime.sleep(0.4)" + END, memory_bytes=GIB)


@pytest.mark.parametrize("devices", [False, True], ids=["without GPUs", "with GPUs"])
def test_a_candidate_stays_the_first_to_be_ended_when_memory_is_short(server, run, devices):
    if "files" not in server.isolation:
        pytest.skip("this machine does not allow the layer 'files'")
    source = "with open(f'/proc/self/task/{os.getpid()}/oom_score_adj', 'w') as file: file.write('0')"
    error = failing(run, source, devices=devices)
    if devices:  # the driver writes to files beside that one
        assert error.status is Status.CRASHED and "oom_score_adj" in error.message
    else:
        assert error.status is Status.LOAD_ERROR and "Permission denied" in error.message


@pytest.mark.slow
@pytest.mark.parametrize("then", ["", "os.unlink('big')\n"], ids=["named", "unnamed"])
def test_files_count_as_memory_where_their_folder_lies_in_it(run, monkeypatch, then):
    """A tmpfs as folder of temporary files, as some systems have, held five gigabytes under a limit of one."""
    monkeypatch.setattr("tempfile.tempdir", "/dev/shm")
    write = f"file = open('big', 'wb')\nfile.write(bytes(600 << 20))\n{then}"
    error = failing(run, "os.chdir(os.environ['TMPDIR'])\n" + write, memory_bytes=GIB // 2)
    assert error.status is Status.OUT_OF_MEMORY and "0.5 GB" in error.message
    run("os.chdir(os.environ['TMPDIR'])\n" + write + "time.sleep(1.5)" + END)


def test_on_a_small_disk_a_candidate_has_half_of_what_is_free(run, monkeypatch):
    """One that filled the disk ended the run of others: there was no room for their results."""
    monkeypatch.setattr("harness.process.worker_limits.free_bytes", lambda folder: 100 << 20)
    monkeypatch.setattr("harness.process.worker_limits._LEAST_DISK_BYTES", 1 << 20)
    write = "for i in range(6): open(os.environ['TMPDIR'] + f'/{i}', 'wb').write(os.urandom(10 << 20))\n"
    error = failing(run, write)
    assert error.status is Status.CRASHED and "wrote 6 files of 0.1 GB together" in error.message
    monkeypatch.setattr("harness.process.worker_limits.free_bytes", lambda folder: 400 << 20)
    run(write + "time.sleep(1.5)" + END)


def test_the_disk_is_looked_at_as_soon_as_much_of_it_is_gone(run, monkeypatch):
    """19 GB were there for a second, between two looks."""
    monkeypatch.setattr("harness.process.worker_limits.MAX_DISK_BYTES", 100 * MIB)
    monkeypatch.setattr("harness.process.worker_limits._DISK_EVERY_S", 1e9)
    write = "for i in range({}): open(os.environ['TMPDIR'] + f'/{{i}}', 'wb').write(os.urandom(20 << 20))\n"
    error = failing(run, write.format(12) + STAY)
    assert error.status is Status.CRASHED and "the limit is" in error.message
    run(write.format(1) + "time.sleep(0.5)" + END)


# A folder with a large file is at "p" whenever "p" was listed, and at "q" else; many names lie between the two.
IS_ELSEWHERE = """
import threading
os.chdir(os.environ["TMPDIR"])
os.makedirs("s/q/big")
q = os.open("s/q", os.O_RDONLY)
for i in range(8000): open(f"s/{i}", "w").close()
os.mkdir("s/p")
p, big = os.open("s/p", os.O_RDONLY), os.open("s/q/big", os.O_RDONLY)
for here, there in ((q, p), (p, q)): os.rename("big", "big", src_dir_fd=here, dst_dir_fd=there)
def move(here, there):
    seen = os.fstat(there).st_atime_ns
    while os.fstat(there).st_atime_ns == seen: pass
    os.rename("big", "big", src_dir_fd=here, dst_dir_fd=there)
def move_about():
    while True: move(q, p), move(p, q)
threading.Thread(target=move_about, daemon=True).start()
for name in "abcd": os.posix_fallocate(os.open(name, os.O_CREAT | os.O_WRONLY, dir_fd=big), 0, 50 << 20)
"""


def test_a_folder_that_moves_while_files_are_counted_is_counted(run, monkeypatch):
    """It was elsewhere at each look, and could fill the disk."""
    monkeypatch.setattr("tempfile.tempdir", "/dev/shm")  # where what was made last is listed first
    monkeypatch.setattr("harness.process.worker_limits.MAX_DISK_BYTES", 100 * MIB)
    error = failing(run, IS_ELSEWHERE, timeout_s=15)
    assert error.status is Status.CRASHED and "of 0.2 GB together; the limit is" in error.message


def test_where_few_files_have_room_a_candidate_has_half_of_them(run, monkeypatch):
    monkeypatch.setattr("harness.process.worker_limits.free_files", lambda folder: 60)
    monkeypatch.setattr("harness.process.worker_limits._LEAST_FILES", 10)
    error = failing(run, "for i in range(40): open(os.environ['TMPDIR'] + f'/{i}', 'w')\n")
    assert error.status is Status.CRASHED and "the limit is 30" in error.message


def test_files_without_a_name_count_as_files_too(run, monkeypatch):
    """Empty ones took all that a disk had for others."""
    monkeypatch.setattr("harness.process.worker_limits.MAX_FILES", 50)
    source = "for i in range(60): os.open(f'{i}', os.O_CREAT | os.O_RDWR), os.unlink(f'{i}')\n"
    error = failing(run, source)
    assert error.status is Status.CRASHED and "the limit is 50" in error.message


def test_the_disk_is_looked_at_before_a_build(run, monkeypatch):
    """A candidate that had filled it asked for a build: what then failed was the machine's fault."""
    monkeypatch.setattr("harness.process.worker_limits.MAX_FILES", 50)
    monkeypatch.setattr("harness.process.worker_limits._DISK_EVERY_S", 1e9)
    asked = []
    fills = "for i in range(60): open(os.environ['TMPDIR'] + f'/{i}', 'w')\n"
    fills += "from torch.utils.cpp_extension import load_inline\nload_inline('a', 'int f() { return 1; }')\n"
    error = failing(run, fills, build=lambda request, scratch: asked.append(request))
    assert error.status is Status.CRASHED and "it wrote" in error.message and not asked


ASKS = """
from torch.utils.cpp_extension import load_inline
for i in range(12):
    try: load_inline('a', '')
    except RuntimeError: pass
"""


@pytest.mark.slow
@pytest.mark.parametrize("slow", ["check", "build"])
def test_the_time_of_builds_is_not_the_workers_and_that_of_checks_is(run, monkeypatch, slow):
    """By 180 requests that were refused a call took 137 s under a limit of one."""
    check = WorkerLimits.check

    def checked(self, pid, signalled, at_once=False):
        time.sleep(0.5 if at_once and slow == "check" else 0)
        check(self, pid, signalled, at_once)

    def refused(request, scratch):
        time.sleep(0.5 if slow == "build" else 0)
        return {"raised": "RuntimeError", "message": "refused", "output": ""}

    monkeypatch.setattr(WorkerLimits, "check", checked)
    late = pytest.raises(CandidateFailure, match="no answer within 4 s")
    with late if slow == "check" else contextlib.nullcontext():
        run(ASKS + END, timeout_s=4, build=refused)


def test_who_keeps_hiding_what_it_has_open_is_ended(monkeypatch):
    monkeypatch.setattr("harness.process.worker_limits.CHECK_EVERY_S", 0)
    limits = WorkerLimits(64 * GIB, False, [])
    limits.begin(os.getpid())
    monkeypatch.setattr("harness.process.worker_limits.open_files", lambda *_: OpenFiles(hiding=1))
    limits.check(os.getpid(), print)
    with pytest.raises(CandidateFailure, match="1 of its processes hide what they have open"):
        limits.check(os.getpid(), print)


def test_descriptors_are_looked_at_once_more_where_one_is_closed_meanwhile(monkeypatch):
    """A removed file that is open by another number at each moment was 0.9 GB under a limit of 0.5."""
    monkeypatch.setattr("harness.process.worker_limits.CHECK_EVERY_S", 0)
    limits, sent, found = WorkerLimits(64 * GIB, False, []), [], [OpenFiles(), OpenFiles(moving=True)]
    limits.begin(os.getpid())
    monkeypatch.setattr("harness.process.worker_limits.open_files", lambda *_: found.pop())
    limits.check(os.getpid(), sent.append)
    assert sent == [signal.SIGSTOP, signal.SIGCONT] and not found


@pytest.mark.parametrize("limit", [1 << 18, 10], ids=["within its limits", "beyond"])
def test_a_worker_that_takes_long_to_check_waits_meanwhile(monkeypatch, limit):
    monkeypatch.setattr("harness.process.worker_limits.CHECK_EVERY_S", 0)
    monkeypatch.setattr("harness.process.worker_limits._SLOW_S", 0)
    monkeypatch.setattr("harness.process.worker_limits._MAX_MAPPINGS", limit)
    limits, sent = WorkerLimits(64 * GIB, False, []), []
    limits.begin(os.getpid())
    if limit > 10:
        limits.check(os.getpid(), sent.append)
        assert sent == [signal.SIGSTOP, signal.SIGCONT]
    else:
        with pytest.raises(CandidateFailure, match="more than 10 mappings together"):
            limits.check(os.getpid(), sent.append)
        assert sent == [signal.SIGSTOP]


def test_a_crowd_is_stopped_before_it_is_looked_at(monkeypatch):
    """While it was, it grew by thousands a second, up to all numbers of processes that the machine has."""
    monkeypatch.setattr("harness.process.worker_limits.CHECK_EVERY_S", 0)
    monkeypatch.setattr("harness.process.worker_limits._MAX_TASKS", 0)
    monkeypatch.setattr("harness.process.worker_limits._LEAST_TASKS", 0)
    limits, sent = WorkerLimits(64 * GIB, False, []), []
    limits.begin(os.getpid())
    monkeypatch.setattr("harness.process.worker_limits.usage", lambda family: pytest.fail("it is looked at"))
    with pytest.raises(CandidateFailure, match="or more processes and threads; the limit is 0"):
        limits.check(os.getpid(), sent.append)
    assert sent == [signal.SIGSTOP]


# Memory of 3 GB in a process that goes on in a new one after each four pages.
MOVES_ON = r"""
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
enum { STACK = 65536, STACKS = 32 };
static const size_t SIZE = 3000000000;
static char *memory, *stacks;
static size_t touched, moves;
static int move_on(void *unused) {
    for (size_t end = touched + 16384; touched < end && touched < SIZE; touched += 4096) memory[touched] = 1;
    clone(move_on, stacks + STACK * (1 + ++moves % STACKS), CLONE_VM | CLONE_FS, 0);
    syscall(SYS_exit, 0);
    return 0;
}
static char *room(size_t size) {
    return mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}
int main() {
    memory = room(SIZE);
    stacks = room(STACK * STACKS);
    return move_on(0);
}
"""
HAS_IT_MOVE_ON = """
import signal, subprocess, threading
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
threading.stack_size(1 << 16)
for _ in range(600): threading.Thread(target=time.sleep, args=[99], daemon=True).start()
subprocess.Popen([{program!r}])
"""


@pytest.mark.slow
def test_memory_that_is_moved_on_to_a_new_process_at_each_moment_is_counted(run, tmp_path):
    """It held 3 GB under a limit of 1 GB: who is listed is gone when it is read, and who has it then is not listed."""
    (tmp_path / "program.c").write_text(MOVES_ON)
    program = str(tmp_path / "program")
    subprocess.run(["gcc", "-O1", tmp_path / "program.c", "-o", program], check=True)
    source = HAS_IT_MOVE_ON.format(program=program)
    error = failing(run, source, memory_bytes=GIB, more=[Path(program)])
    assert error.status is Status.OUT_OF_MEMORY and "GB of host memory; the limit is 1.1 GB" in error.message


# A file of the kernel's text keeps as much as its longest line: of a path whose characters are shown as four each.
HOLDS_LINES = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
os.chdir(sys.argv[1])
for _ in range(60): os.mkdir("\\n" * 255); os.chdir("\\n" * 255)
file = os.open("x", os.O_RDWR | os.O_CREAT)
os.ftruncate(file, 4096)
libc.mmap(ctypes.c_void_p(0x10000), ctypes.c_size_t(4096), 1, 0x12, file, ctypes.c_long(0))  # the first line
held = [os.open("/proc/self/maps", os.O_RDONLY) for _ in range(900)]
for file in held: os.read(file, 1)
print(len(held), flush=True)
sys.stdin.read()
"""


def test_memory_of_the_kernel_is_that_of_no_process(tmp_path):
    before = unaccounted_memory_bytes()
    command = [sys.executable, "-c", HOLDS_LINES, tmp_path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holds:
        assert holds.stdout.readline() == b"900\n"
        assert unaccounted_memory_bytes() - before > 900 * 32_000
        holds.stdin.close()


# One page of each huge page is kept, and all of it stays.
KEEPS_PARTS = """
import ctypes, sys
libc, size, count = ctypes.CDLL(None), 2 << 20, 200
libc.mmap.restype = ctypes.c_void_p
start = libc.mmap(None, ctypes.c_size_t((count + 1) * size), 3, 0x22, -1, ctypes.c_long(0)) + size - 1 & -size
libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(count * size), 14)
for place in range(start, start + count * size, size):
    ctypes.memset(place, 1, 1)
    libc.madvise(ctypes.c_void_p(place + 4096), ctypes.c_size_t(size - 4096), 4)
print("holds", flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(
    "[never]" in read_text("/sys/kernel/mm/transparent_hugepage/enabled"), reason="this machine gives no huge pages"
)
def test_parts_of_huge_pages_that_were_given_back_are_in_no_account():
    before = unaccounted_memory_bytes()
    command = [sys.executable, "-c", KEEPS_PARTS]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holds:
        assert holds.stdout.readline() == b"holds\n"
        assert unaccounted_memory_bytes() - before > 300e6
        holds.stdin.close()


def test_who_makes_the_kernel_take_more_than_a_worker_may_is_not_evaluated(run, monkeypatch):
    at_first = unaccounted_memory_bytes()
    sizes, read = iter([at_first, at_first + GIB]), "harness.process.worker_limits.unaccounted_memory_bytes"
    monkeypatch.setattr(read, lambda: next(sizes, at_first + 3 * GIB))
    with pytest.raises(MachineFault, match=r"in no process's account .* grew by 3.2 GB .* may take 2.1 GB"):
        run("while True: time.sleep(1)")
