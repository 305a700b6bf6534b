"""Open files and mappings of processes, counted up to a limit and no further."""

import mmap
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.process.holdings import mappings, open_files
from harness.process.procfs import read_text, usage

MANY = 1 << 20


def in_memory(found):
    return sum(size for lies_in_memory, size in found.nameless.values() if lies_in_memory)


def test_files_without_a_name_are_counted_with_the_bytes_that_they_take(tmp_path):
    before = open_files([os.getpid()], MANY)
    memory = os.memfd_create("test")
    os.write(memory, bytes(1 << 20))
    with open(tmp_path / "gone", "wb") as file:
        file.write(bytes(2 << 20))
        file.flush()
        os.fsync(file.fileno())
        (tmp_path / "gone").unlink()
        after = open_files([os.getpid()], MANY)
    os.close(memory)
    new = [of for name, of in after.nameless.items() if name not in before.nameless]
    assert (True, 1 << 20) in new
    assert [1 for lies_in_memory, size in new if not lies_in_memory and 2 << 20 <= size < 3 << 20]


@pytest.mark.parametrize("held", ["opened", "the working directory"])
def test_a_folder_without_a_name_counts_as_a_file_does(tmp_path, monkeypatch, held):
    """One that held 40,000 files takes megabytes when it is empty, and is no file of a folder that is listed."""
    folder = tmp_path / "gone"
    folder.mkdir()
    before = open_files([os.getpid()], MANY)
    found, descriptor = folder.stat(), None
    if held == "opened":
        descriptor = os.open(folder, os.O_RDONLY)
    else:
        monkeypatch.chdir(folder)
    folder.rmdir()
    after = open_files([os.getpid()], MANY)
    if descriptor is not None:
        os.close(descriptor)
    assert [name for name in after.nameless if name not in before.nameless] == [(found.st_dev, found.st_ino)]


@pytest.fixture
def deep(tmp_path):
    """A folder whose path is longer than the system takes, which this process is in."""
    before = os.getcwd()
    os.chdir(tmp_path)
    for _ in range(20):
        os.mkdir("d" * 250)
        os.chdir("d" * 250)
    yield
    os.chdir(before)


def written(name, size):
    descriptor = os.open(name, os.O_RDWR | os.O_CREAT)
    os.write(descriptor, bytes(size))
    os.fsync(descriptor)
    return descriptor


def test_a_file_without_a_name_counts_however_long_its_path_was(deep):
    before = open_files([os.getpid()], MANY)
    descriptor = written("gone", 2 << 20)
    assert not set(open_files([os.getpid()], MANY).nameless) - set(before.nameless)
    os.unlink("gone")
    (new,) = set(open_files([os.getpid()], MANY).nameless) - set(before.nameless)
    assert new[1] == os.fstat(descriptor).st_ino
    os.close(descriptor)


# Maps one page of a file of 2 MB at an address that /proc/PID/maps fills up with zeros.
MAPS_LOW = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
file = os.open("gone", os.O_RDWR | os.O_CREAT)
os.write(file, bytes(2 << 20)), os.fsync(file)
assert libc.mmap(0x1000000, 4096, 1, 0x12, file, 0) == 0x1000000  # MAP_PRIVATE | MAP_FIXED
os.unlink("gone"), os.close(file)
print(flush=True), sys.stdin.readline()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may look behind a mapping")
def test_all_of_a_file_counts_that_is_mapped_in_part_at_a_low_address(tmp_path):
    """18 files of 100 MB were 18 pages."""
    command = [sys.executable, "-c", MAPS_LOW]
    with subprocess.Popen(command, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        found = mappings([process.pid], MANY).nameless
        process.stdin.close()
    assert [size for lies_in_memory, size in found.values() if not lies_in_memory] == [2 << 20]


@pytest.mark.parametrize("flags", [mmap.MAP_SHARED, mmap.MAP_PRIVATE], ids=["shared", "private"])
def test_a_file_that_is_only_mapped_counts(tmp_path, flags):
    descriptor = written(tmp_path / "gone", 2 << 20)
    inode = os.fstat(descriptor).st_ino
    mapping = mmap.mmap(descriptor, mmap.PAGESIZE, flags, mmap.PROT_READ)
    os.close(descriptor)  # mmap keeps a descriptor of its own
    (tmp_path / "gone").unlink()
    found = mappings([os.getpid()], MANY).nameless
    assert [lies_in_memory for (_, number), (lies_in_memory, _) in found.items() if number == inode] == [False]
    mapping.close()


def test_the_file_of_a_program_counts_that_has_no_name_any_more(tmp_path):
    """Neither open nor mapped: a process that unmaps its own text keeps it all the same."""
    program = tmp_path / "program"
    program.write_bytes(Path("/bin/sleep").read_bytes() + bytes(2 << 20))
    program.chmod(0o700)
    with subprocess.Popen([program, "60"]) as process:
        try:
            inode = program.stat().st_ino
            while os.stat(f"/proc/{process.pid}/exe").st_ino != inode:  # not until it has begun
                time.sleep(0.01)
            program.unlink()
            found = open_files([process.pid], MANY).nameless
        finally:
            process.kill()
    (of,) = [of for (_, number), of in found.items() if number == inode]
    assert not of[0] and of[1] >= 2 << 20


def test_a_pipe_counts_once_with_two_pages_and_a_socket_with_its_buffer():
    before = open_files([os.getpid()], MANY).buffer_bytes
    pipe = os.pipe()
    assert open_files([os.getpid()], MANY).buffer_bytes - before == 2 * mmap.PAGESIZE
    one, other = socket.socketpair()
    assert open_files([os.getpid()], MANY).buffer_bytes - before > 2 * mmap.PAGESIZE + 2 * 100_000
    for end in (*pipe, one.detach(), other.detach()):
        os.close(end)


def test_it_is_told_where_a_descriptor_was_closed_meanwhile(monkeypatch):
    with subprocess.Popen(["sleep", "60"]) as other:
        assert not open_files([other.pid], MANY).moving
        other.kill()
    here, there = os.pipe()
    os.close(there)
    os.close(here)
    monkeypatch.setattr("harness.process.holdings._descriptors", lambda process: [("/proc/self/fd", str(here))])
    assert open_files([os.getpid()], MANY).moving


def test_beyond_the_limit_no_process_is_listed_and_no_descriptor_read(monkeypatch):
    listed = []
    monkeypatch.setattr("harness.process.holdings.os.listdir", lambda folder: listed.append(folder) or ["0"] * 4096)
    monkeypatch.setattr("harness.process.holdings.os.readlink", lambda path: pytest.fail(path))
    assert open_files(list(range(1, 400)), most=65_536).descriptors == 17 * 4096
    assert len(listed) == 17


def test_a_process_that_shows_nobody_what_it_has_open_is_counted(monkeypatch):
    def refused(folder):
        raise PermissionError(folder)

    monkeypatch.setattr("harness.process.holdings.os.listdir", refused)
    assert open_files([1, 2], MANY).hiding == 2


def test_mappings_are_counted_up_to_the_limit():
    every = mappings([os.getpid()], MANY)
    assert every.count > 20 and every.kernel_bytes == 256 * every.count
    assert mappings([os.getpid()] * 3, MANY).count >= 3 * every.count - 5
    assert mappings([os.getpid()] * 1000, most=10).count == 11


def test_a_mapping_of_a_file_with_a_long_name_counts_more_than_once(monkeypatch):
    line = b"7f00-8f00 r--s 00000000 00:01 7 /" + b"x" * 4000 + b" (deleted)\n"
    monkeypatch.setattr("harness.process.holdings._lines_of_maps", lambda process: iter([line.rstrip()] * 10))
    assert mappings([1], MANY).count == 80


@pytest.mark.parametrize("kept", ["rw-p", "rw-s"], ids=["private", "shared"])
def test_huge_pages_lie_in_memory_and_on_no_disk(monkeypatch, kept):
    """MAP_HUGETLB gives a file without a name to each mapping, and 8 GB of them were too much disk."""
    line = f"7f0000000000-7f0040000000 {kept} 00000000 00:0f 7            /anon_hugepage (deleted)".encode()
    monkeypatch.setattr("harness.process.holdings._lines_of_maps", lambda process: iter([line]))
    assert [*mappings([1], MANY).nameless.values()] == [(True, 1 << 30)]


ONLY_A_THREAD_IS_LEFT = """
import ctypes, os, threading
memory = bytearray(b"x") * (64 << 20)
os.write(os.memfd_create("x"), bytes(1 << 20))
threading.Thread(target=input).start()
print("ready", flush=True)
ctypes.CDLL(None).syscall(60 if os.uname().machine == "x86_64" else 93, 0)
"""


def test_a_process_whose_first_thread_has_ended_holds_what_it_held():
    process = subprocess.Popen([sys.executable, "-c", ONLY_A_THREAD_IS_LEFT], stdin=-1, stdout=-1)
    assert process.stdout.readline() == b"ready\n"
    while " Z " not in read_text(f"/proc/{process.pid}/stat"):
        os.sched_yield()
    assert not read_text(f"/proc/{process.pid}/maps") and "RssAnon" not in read_text(f"/proc/{process.pid}/status")
    assert usage([process.pid]).private > 64 << 20
    assert in_memory(open_files([process.pid], MANY)) == 1 << 20
    assert mappings([process.pid], MANY).count > 20
    process.communicate(b"\n")
