"""What a worker cannot do to the machine around it, on kernels that allow it to be kept from it."""

import inspect
import os
import socket
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest
import torch

from harness.compile import BuildContext, build
from harness.compile.cache import built_bytes
from harness.compile.extension.build import ExtensionBuilder, Refused, _deliver
from harness.faults import MachineFault
from harness.memory.shared_tensors import SharedTensors
from harness.process import sandbox
from harness.process.fork_server import ForkServer
from harness.process.sandbox import landlock
from harness.result import CandidateFailure, Status
from harness.solution.discover import discover, read_solution
from harness.solution.visible_files import own_files

GIB = 1 << 30
HEAD = "import ctypes, os, resource, signal, socket, subprocess\njudge = {judge}\n"
END = "\nclass ModelNew: pass\n"

# layer -> attempts, each of which must raise
ATTEMPTS = {
    "files": [
        "open('/dev/shm/kb-test', 'w')",
        "open(os.path.join({folder!r}, 'new'), 'w')",
        "open({secret!r})",
        "os.listdir(os.path.expanduser('~root'))",
        "os.listdir({checkout!r})",
        "os.rename({secret!r}, 'stolen')",
        "os.link({secret!r}, 'stolen')",
        "os.truncate({secret!r}, 0)",
        "open(os.path.join({site!r}, 'kb-test.pth'), 'w')",
        "open(f'/proc/{{judge}}/mem', 'rb')",
        "open(f'/proc/{{judge}}/environ', 'rb').read()",
        "os.readlink(f'/proc/{{judge}}/fd/0')",
        "open(f'/proc/{{judge}}/cmdline').read()",
        "open('/proc/1/status').read()",
        "open('/proc/locks').read()",
        # what looks through all pages, and ends at no signal
        "open('/proc/self/smaps').read()",
        "open('/proc/self/smaps_rollup').read()",
        "open('/proc/self/numa_maps').read()",
        "open('/proc/self/pagemap', 'rb').read(8)",
        "open('/proc/thread-self/smaps_rollup').read()",
        "open(f'/proc/self/task/{{os.getpid()}}/smaps_rollup').read()",
        "open('/proc/slabinfo').read()",
        "os.listdir('/sys/kernel')  # debug and tracing, which tell root of all processes",
        "os.listdir('/sys/fs/cgroup')",
        "import glob\n[open(p) for p in glob.glob('/sys/module/*/parameters/*') + glob.glob('/sys/class/*/*')]",
        "open('/proc/sys/kernel/cad_pid').read()",
        "os.listdir('/proc/tty')",
        "open('/proc/sys/vm/stat_refresh').read()",
        "open('/proc/sys/net/ipv4/tcp_fastopen_key').read()",
        "os.listdir('/proc')",
    ],
    "system_calls": [
        "socket.socket(socket.AF_INET)",
        "one, other = socket.socketpair(); size = one.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)\n"
        "one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * size)\n"
        "assert one.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) > size",
        "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
        "os.kill(judge, 0)",
        "os.kill(os.getppid(), signal.SIGKILL)",
        "os.sched_setscheduler(judge, os.SCHED_BATCH, os.sched_param(0))",
        "os.setpriority(os.PRIO_PROCESS, judge, 19)",
        "os.setpriority(os.PRIO_USER, 0, 19)",
        "os.setpriority(os.PRIO_PGRP, 0, 19)",
        "os.chown('.', -1, -1)",
        "resource.prlimit(judge, resource.RLIMIT_CPU, (1, 1))",
        "assert ctypes.CDLL(None).ptrace(16, judge, 0, 0) == 0",
        "assert ctypes.CDLL(None).shmget(7, 4096, 0o1600) >= 0",
        # what goes off while its process is stopped
        "import time\ntime.clock_gettime(~os.getppid() << 3 | 2)  # the CPU time of another process",
        "import time\ntime.clock_getres(~os.getppid() << 3 | 2)",
        "assert ctypes.CDLL(None).timerfd_create(1, 0) >= 0",
        "assert ctypes.CDLL(None).timer_create(1, None, ctypes.byref(ctypes.c_void_p())) == 0",
        "signal.setitimer(signal.ITIMER_REAL, 100)",
        "assert ctypes.CDLL(None).alarm(100) == 0",
        "assert ctypes.CDLL(None).inotify_init1(0) >= 0",
        "import select\nselect.epoll()",
        "assert ctypes.CDLL(None).syscall(206 if os.uname().machine == 'x86_64' else 0, 8, "
        "ctypes.byref(ctypes.c_ulong())) == 0  # io_setup",
        "import fcntl\nfcntl.fcntl(1, fcntl.F_SETOWN, os.getpid())",
        "import fcntl\nfcntl.fcntl(1, 10, signal.SIGCONT)  # F_SETSIG",
        "import array, fcntl\nfcntl.ioctl(1, 0x8901, array.array('i', [os.getpid()]))  # FIOSETOWN",
        "assert ctypes.CDLL(None).prctl(36, 0, 0, 0, 0) == 0",
        "assert ctypes.CDLL(None).prctl(1, signal.SIGCONT, 0, 0, 0) == 0  # PR_SET_PDEATHSIG",
        "assert ctypes.CDLL(None).prctl(1, 0, 0, 0, 0) == 0  # PR_SET_PDEATHSIG",
        # what the kernel keeps in no account, frees by itself or looks for
        "assert ctypes.CDLL(None).syscall(444, None, 0, 1) >= 0  # landlock_create_ruleset, its version",
        "import struct\nprogram = ctypes.create_string_buffer(struct.pack('HBBI', 6, 0, 0, 0), 8)\n"
        "described = struct.pack('HxxxxxxQ', 1, ctypes.addressof(program))\n"
        "one = socket.socket(socket.AF_UNIX); one.setsockopt(socket.SOL_SOCKET, 26, described)  # SO_ATTACH_FILTER\n"
        "assert one.getsockopt(socket.SOL_SOCKET, 26, 64)",
        "import mmap\nmmap.mmap(-1, 1 << 20).madvise(12)  # MADV_MERGEABLE",
        # MADV_FREE, MADV_COLD, MADV_PAGEOUT
        *(f"import mmap\nmmap.mmap(-1, 1 << 20, flags=34).madvise({advice})" for advice in (8, 20, 21)),
        # what signals do not end
        "import mmap\npages = mmap.mmap(-1, 8 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)\n"
        "for at in range(0, 8 << 20, 1 << 20): pages[at] = 1\n"
        "pages.madvise(25)  # MADV_COLLAPSE",
        "import mmap\npages = mmap.mmap(-1, 1 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)\n"
        "pages.madvise(102)  # MADV_GUARD_INSTALL",
        "import mmap\npage, found = ctypes.c_char.from_buffer(mmap.mmap(-1, 4096)), ctypes.create_string_buffer(1)\n"
        "assert ctypes.CDLL(None).mincore(ctypes.byref(page), ctypes.c_size_t(4096), found) == 0",
        "assert ctypes.CDLL(None).prctl(67, 0, 0, 0, 0) == 0  # PR_SET_MEMORY_MERGE",
        "assert ctypes.CDLL(None).poll(bytes(8 * 129), 129, 0) >= 0",
        "number = 316 if os.uname().machine == 'x86_64' else 276\nopen('a', 'w').close()\n"
        "assert ctypes.CDLL(None).syscall(number, -100, b'a', -100, b'b', 4) == 0  # RENAME_WHITEOUT",
        "number, action = 317 if os.uname().machine == 'x86_64' else 277, ctypes.c_uint32(0x7FFF0000)\n"
        "assert ctypes.CDLL(None).syscall(number, 2, 0, ctypes.byref(action)) == 0  # SECCOMP_GET_ACTION_AVAIL",
        "file = os.memfd_create('x')\nassert ctypes.CDLL(None).sync_file_range(file, 0, 0, 2) == 0",
        "os.kill(os.getpid(), signal.SIGCONT)",
        "os.kill(0, signal.SIGCONT)",
        "signal.raise_signal(signal.SIGCONT)",
        "import threading\nsignal.pthread_kill(threading.get_ident(), signal.SIGCONT)",
        "signal.pidfd_send_signal(os.pidfd_open(os.getpid()), signal.SIGCONT)",
        "clone = 56 if os.uname().machine == 'x86_64' else 220  # a child whose end continues its parent\n"
        "assert (pid := ctypes.CDLL(None).syscall(clone, 18, 0, 0, 0, 0)) > 0 or pid == 0 and os._exit(0)",
        "clone = 56 if os.uname().machine == 'x86_64' else 220  # below, with CLONE_PARENT | SIGCHLD\n"
        "assert (pid := ctypes.CDLL(None).syscall(clone, 0x8011, 0, 0, 0, 0)) > 0 or pid == 0 and os._exit(0)",
        *(
            "clone = 56 if os.uname().machine == 'x86_64' else 220  # a child in a namespace of its own\n"
            f"assert (pid := ctypes.CDLL(None).syscall(clone, {flag | 17}, 0, 0, 0, 0)) > 0 or pid == 0 and os._exit(0)"
            for flag in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000)
        ),
        "libc = ctypes.CDLL(None, use_errno=True)\nlibc.syscall(435, None, 0)  # clone3\n"
        "assert ctypes.get_errno() != 38",
        # what no account of its memory shows
        "libc, page = ctypes.CDLL(None), ctypes.create_string_buffer(4096)\n"
        "part = (ctypes.c_void_p * 2)(ctypes.addressof(page), 4096)\n"
        "assert libc.vmsplice(os.pipe()[1], part, ctypes.c_size_t(1), 0) == 4096",
        "file = os.memfd_create('x'); os.write(file, b'x'); os.lseek(file, 0, 0)\n"
        "assert ctypes.CDLL(None).splice(file, None, os.pipe()[1], None, ctypes.c_size_t(1), 0) == 1",
        "import socket\none, _ = socket.socketpair()\nsocket.send_fds(one, [b'x'], [0])",
        "os.setxattr('.', 'user.x', b'x')",
        "os.setxattr(os.memfd_create('x'), 'user.x', b'x')",
        "assert ctypes.CDLL(None).prctl(78, 1, 16, 0, 0) == 0  # PR_FUTEX_HASH",
        "import socket\none, _ = socket.socketpair()\none.sendmsg([b'x'])",
        "one = socket.socket(socket.AF_UNIX); one.bind('here'); one.listen()\n"
        "socket.socket(socket.AF_UNIX).connect('here')",
        "one = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); one.bind('here')\n"
        "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'x', 'here')",
        "import mmap\npages, node = mmap.mmap(-1, 1 << 20), ctypes.c_ulong(1)\n"
        "libc, at = ctypes.CDLL(None), ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(pages)))\n"
        "mbind, get = (237, 239) if os.uname().machine == 'x86_64' else (235, 236)\n"
        "libc.syscall(mbind, at, 1 << 20, 2, ctypes.byref(node), 64, 0); mode = ctypes.c_int(-1)\n"
        "assert libc.syscall(get, ctypes.byref(mode), None, 0, at, 2) < 0 or mode.value == 2  # MPOL_BIND",
        # files that it may read, changed where Landlock does not look
        "import array, fcntl\nfile, flags = os.open({own!r}, 0), array.array('i', [0])\n"
        "fcntl.ioctl(file, 0x80086601, flags); fcntl.ioctl(file, 0x40086602, flags)  # FS_IOC_{{GET,SET}}FLAGS",
        "os.listxattr({own!r})",
        "import fcntl\none, other = open('own', 'w'), open('own', 'w')\n"
        "fcntl.flock(one, fcntl.LOCK_EX)\ntaken = False\n"
        "try: fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)\nexcept BlockingIOError: taken = True\nassert taken",
        "import fcntl\nfile = open('own', 'w'); fcntl.lockf(file, fcntl.LOCK_EX)\n"
        "other = \"import fcntl; fcntl.lockf(open('own', 'w'), fcntl.LOCK_EX | fcntl.LOCK_NB)\"\n"
        "assert subprocess.run([os.sys.executable, '-c', other], stderr=subprocess.DEVNULL).returncode == 1",
        "assert ctypes.CDLL(None).prctl(62, 1, 0, 0, 0) == 0  # PR_SCHED_CORE",
        "assert ctypes.CDLL(None).personality(0x0040000) >= 0  # ADDR_NO_RANDOMIZE",
        "assert ctypes.CDLL(None).signalfd(-1, ctypes.create_string_buffer(8), 0) >= 0",
        "assert ctypes.CDLL(None).syncfs(1) == 0",
        "number = 436  # close_range, on any machine, with CLOSE_RANGE_UNSHARE\n"
        "assert ctypes.CDLL(None).syscall(number, 4000, 4001, 2) == 0",
        "clone = 56 if os.uname().machine == 'x86_64' else 220  # a thread with open files of its own\n"
        "assert ctypes.CDLL(None).syscall(clone, 0x10900, 0, 0, 0, 0) > 0",
        "clone = 56 if os.uname().machine == 'x86_64' else 220  # a thread with a working directory of its own\n"
        "assert ctypes.CDLL(None).syscall(clone, 0x10d00, 0, 0, 0, 0) > 0",
    ],
    "privileges": ["assert subprocess.run(['chown', '1', '.']).returncode == 0"],
    "limits": [
        "open('big', 'wb').truncate(9 << 30)",
        "signal.pthread_sigmask(signal.SIG_BLOCK, [40]); described = (ctypes.c_int * 32)(40, 0, -1)\n"
        "number = 129 if os.uname().machine == 'x86_64' else 138  # rt_sigqueueinfo: they are counted by user\n"
        "assert all(ctypes.CDLL(None).syscall(number, os.getpid(), 40, described) == 0 for _ in range(2000))",
    ],
}  # fmt: skip


@pytest.fixture
def attempt(server, tmp_path):
    """Have a fresh worker run ``source``; what it printed. Raises CandidateFailure."""
    (tmp_path / "readable").mkdir()

    def attempt(source, **limits):
        path = tmp_path / "readable" / "module.py"
        path.write_text(HEAD.format(judge=os.getpid()) + source + END)
        with server.fork({}, GIB, readable=[path.parent]) as worker:
            worker.request({"op": "import", "solution": str(path)}, limits.get("timeout_s", 20))
        return worker

    return attempt


@pytest.mark.parametrize("layer, source", [(layer, source) for layer in ATTEMPTS for source in ATTEMPTS[layer]])
def test_what_a_layer_forbids_fails_in_the_candidate(server, attempt, tmp_path, layer, source):
    if layer not in server.isolation:
        pytest.skip(f"this machine does not allow the layer '{layer}'")
    secret = tmp_path / "secret"
    secret.write_text("kept")
    names = dict(folder=str(tmp_path), secret=str(secret), site=sysconfig.get_paths()["purelib"],
                 checkout=str(Path(sandbox.__file__).parents[3]), own=torch.__file__)  # fmt: skip
    with pytest.raises(CandidateFailure) as caught:
        attempt(source.format(**names))
    assert caught.value.status in (Status.LOAD_ERROR, Status.CRASHED), caught.value.message
    assert secret.read_text() == "kept" and not (tmp_path / "new").exists()


def test_limits_are_none_where_nobody_sees_who_hides(tmp_path, monkeypatch):
    """With /proc mounted as on hardened hosts (hidepid), a candidate that hid had no limit."""
    assert sandbox.shows_who_hides() and not sandbox.shows_who_hides(tmp_path)
    monkeypatch.setattr(sandbox, "shows_who_hides", lambda: False)
    assert "limits" not in sandbox.available()


def test_what_an_honest_candidate_needs_is_there(attempt):
    worker = attempt(
        "import tempfile, threading, math, torch\n"
        "with tempfile.NamedTemporaryFile('w+') as file: file.write('x')\n"
        "assert subprocess.run(['c++', '--version'], stdout=subprocess.DEVNULL).returncode == 0\n"
        "assert subprocess.run(['sh', '-c', 'sleep 0 & wait'], start_new_session=True).returncode == 0\n"
        "open('/dev/null', 'w').write('x'); open('/proc/self/status').read(); os.urandom(4)\n"
        "open('/sys/devices/system/cpu/online').read(); os.listdir('/sys/bus'); os.listdir('/sys/class')\n"
        "open('/proc/cpuinfo').read(); open('/proc/sys/vm/overcommit_memory').read()\n"
        "open('/proc/self/maps').read(); open('/proc/thread-self/stat').read()\n"
        "import multiprocessing; multiprocessing.get_context('spawn').Process(target=print).start()\n"
        "import asyncio; assert asyncio.run(asyncio.sleep(0, 5)) == 5\n"
        "assert subprocess.run([os.sys.executable, '-c', 'import torch; torch.ones(9)']).returncode == 0\n"
        "a, b = socket.socketpair()\n"
        "cores = os.sched_getaffinity(0); os.sched_setaffinity(0, {min(cores)})\n"
        "assert os.sched_getaffinity(0) == cores, 'others are evaluated on other cores'\n"
        "threading.Thread(target=print, args=('done',)).start()\n"
        "torch.ones(1000, 1000) @ torch.ones(1000, 1000)"
    )
    assert "done" in worker.output.decode()


def test_rights_and_times_stay_as_they_are_whatever_a_candidate_is_told(attempt, tmp_path):
    """Landlock does not see them: a candidate could shut others out of files that its user owns."""
    file = tmp_path / "others"
    file.write_text("x")
    file.chmod(0o640)
    before = file.stat()
    attempt(
        f"os.chmod({str(file)!r}, 0o777); os.utime({str(file)!r}, (0, 0))\n"
        "open('own', 'w').close(); os.chmod('own', 0); os.fchmod(os.open('own', 0), 0)\n"
        "os.setpriority(os.PRIO_PROCESS, 0, 19); assert os.getpriority(os.PRIO_PROCESS, 0) == 19"
    )
    after = file.stat()
    assert (after.st_mode, after.st_mtime_ns) == (before.st_mode, before.st_mtime_ns)


def test_no_two_abstract_sockets_meet(server, attempt):
    if "network" not in server.isolation:
        pytest.skip("this machine allows no network namespace")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("\0kb-test")
        listening.listen()
        with pytest.raises(CandidateFailure, match="No such file|refused"):
            attempt("socket.socket(socket.AF_UNIX).connect('\\0kb-test')")


def test_only_a_worker_that_is_given_devices_can_open_one(server, tmp_path, monkeypatch):
    if "files" not in server.isolation:
        pytest.skip("this machine has no Landlock")
    device = tmp_path / "nvidia0"
    device.write_text("")
    monkeypatch.setattr(landlock, "gpu_devices", lambda: [device])

    def opens(**confinement):
        def layer(_):
            landlock.restrict(sandbox.Confinement(**confinement))
            with open(device, "r+"):
                return "opened"

        return sandbox._in_a_child(layer) == "opened"

    assert opens(devices=True) and not opens()
    assert "devices" not in inspect.signature(BuildContext.worker).parameters, "builds have no way to one"


def test_a_build_reads_no_more_than_a_worker(server, tmp_path):
    if "files" not in server.isolation:
        pytest.skip("this machine has no Landlock")
    (tmp_path / "secret").write_text("the secret")
    (tmp_path / "solutions").mkdir()
    source = tmp_path / "solutions" / "1_19.cpp"
    source.write_text('#include "../secret"\n')
    with pytest.raises(CandidateFailure) as caught:
        build(read_solution(source), BuildContext(server, None, torch.__version__, 60, GIB))
    assert "Permission denied" in caught.value.message and "the secret" not in caught.value.log


def test_a_candidate_sees_the_files_that_it_names_and_not_its_neighbours(server, tmp_path):
    if "files" not in server.isolation:
        pytest.skip("this machine has no Landlock")
    (tmp_path / "secret").write_text("not in the directory of solutions")
    root = tmp_path / "solutions"
    (root / "csrc").mkdir(parents=True)
    for name in ("1_20.py", "csrc/kernel.cuh", "csrc/1_21.cu", "table.txt", "unnamed.h"):
        (root / name).write_text("x")
    (root / "link.h").symlink_to(tmp_path / "secret")
    (root / "1_19.py").write_text("names = 'csrc', 'kernel.cuh', '1_21.cu', 'table.txt', '1_20.py', 'link.h'")
    solution = next(s for s in discover(root).solutions if s.name == "1_19.py")
    assert sorted(path.name for path in own_files(solution)) == ["1_19.py", "kernel.cuh", "table.txt"]
    tries = (
        f"import os\nfor folder, _, names in os.walk({str(root)!r}):\n    for name in names:\n"
        "        try: open(os.path.join(folder, name)).read(); print('saw', name)\n"
        "        except OSError: pass\nclass ModelNew: pass\n"
    )
    (root / "1_19.py").write_text((root / "1_19.py").read_text() + "\n" + tries)
    with server.fork({}, GIB, readable=own_files(solution)) as worker:
        worker.request({"op": "import", "solution": str(solution.path)}, 20)
    assert sorted(worker.output.decode().split()[1::2]) == ["1_19.py", "kernel.cuh", "table.txt"]


def test_a_link_in_its_folder_leads_the_trusted_side_nowhere(server, tmp_path):
    scratch, outside = tmp_path / "scratch", tmp_path / "outside"
    scratch.mkdir()
    outside.mkdir()
    (scratch / "extensions").symlink_to(outside)
    (tmp_path / "built.so").write_bytes(b"x")
    with pytest.raises(Refused):
        _deliver(tmp_path / "built.so", scratch, "key")
    (scratch / "extensions").unlink()
    (scratch / "extensions" / "key").mkdir(parents=True)
    (scratch / "extensions" / "key" / "built.so").symlink_to(outside / "planted")
    _deliver(tmp_path / "built.so", scratch, "key")
    assert not any(outside.iterdir())


def test_what_a_compilers_plugin_puts_in_place_of_a_source_is_not_copied_to_the_candidate(tmp_path):
    scratch, built, outside = tmp_path / "scratch", tmp_path / "built", tmp_path / "outside"
    for folder in (scratch, built, outside):
        folder.mkdir()
    (outside / "main.cpp").write_text("the secret")
    (built / "main.cpp").symlink_to(outside / "main.cpp")
    (tmp_path / "link").symlink_to(outside)
    os.mkfifo(built / "cuda.cu")
    for source in (built / "main.cpp", tmp_path / "link" / "main.cpp", built / "cuda.cu"):
        with pytest.raises(Refused):
            _deliver(source, scratch, "key")
    (built / "own.cpp").write_text("own")
    assert _deliver(built / "own.cpp", scratch, "key").read_text() == "own"
    with pytest.raises(ValueError, match="no plain file"):
        built_bytes(tmp_path / "link" / "main.cpp")


def test_a_file_that_became_a_link_meanwhile_is_not_read(server, tmp_path):
    if "files" not in server.isolation:
        pytest.skip("this machine has no Landlock")
    own, outside = tmp_path / "own", tmp_path / "outside"
    for folder in (own, outside):
        folder.mkdir()
        (folder / "x.py").write_text(f"names = {folder.name!r}")
    (outside / "listed").touch()
    module = tmp_path / "module" / "module.py"
    module.parent.mkdir()
    source = (
        "import os\n"
        f"for name in ({str(own)!r}, {str(outside)!r}):\n"
        "    for look in (lambda: open(name + '/x.py').read(), lambda: os.listdir(name)):\n"
        "        try: print('saw', look())\n"
        "        except OSError: print('nothing')\n"
    )
    module.write_text(source + END)

    def seen():
        with server.fork({}, GIB, readable=[own / "x.py", module]) as worker:
            worker.request({"op": "import", "solution": str(module)}, 20)
        return worker.output.decode().splitlines()

    assert seen() == ["saw names = 'own'", "saw ['x.py']", "nothing", "nothing"]
    own.rename(tmp_path / "before")
    own.symlink_to(outside)
    assert seen() == ["nothing"] * 4


@pytest.mark.parametrize("what, why", [("pipe", "not a plain file"), ("/dev/zero", "not the solution's own file")])
def test_a_source_that_never_ends_is_refused(server, tmp_path, what, why):
    path = tmp_path / what
    if what == "pipe":
        os.mkfifo(path)
    (tmp_path / "1_19.py").write_text("")
    solution = read_solution(tmp_path / "1_19.py")
    builder = ExtensionBuilder(solution, BuildContext(server, None, torch.__version__, 60, GIB))
    arguments = {"name": "kb_x", "sources": [str(path)]}
    assert why in builder({"function": "load", "arguments": arguments}, tmp_path)["message"]


FORGES_AN_ANSWER_AND_READS_NO_MORE = """
import gc, socket, struct
channel = next(o for o in gc.get_objects() if type(o) is socket.socket and o.fileno() >= 0)
channel.sendall(struct.pack("!I", 2) + b"{}")
while True: pass
"""


def test_a_worker_that_does_not_read_is_a_timeout(server, tmp_path):
    """Its socket fills up, and whoever writes to it must not wait for ever."""
    path = tmp_path / "module.py"
    path.write_text(FORGES_AN_ANSWER_AND_READS_NO_MORE)
    with server.fork({}, GIB, readable=[path]) as worker:
        assert worker.request({"op": "import", "solution": str(path)}, 20) == {}
        with pytest.raises(CandidateFailure) as caught:
            worker.request({"op": "import", "solution": "x" * (4 << 20)}, 2)
    assert caught.value.status is Status.TIMEOUT


ASKS_AND_READS_NO_ANSWER = """
import gc, json, socket, struct
channel = next(o for o in gc.get_objects() if type(o) is socket.socket and o.fileno() >= 0)
channel.setblocking(False)
asked = json.dumps({"build": {}}).encode()
try:
    while True: channel.send(struct.pack("!I", len(asked)) + asked)
except BlockingIOError: pass
held = [b"x" * (1 << 20) for _ in range(3000)]
while True: pass
"""


def test_limits_hold_while_a_worker_does_not_read_what_it_asked_for(server, tmp_path, monkeypatch):
    monkeypatch.setattr("harness.process.memory_cgroup.make", lambda limit: None)
    path = tmp_path / "module.py"
    path.write_text(ASKS_AND_READS_NO_ANSWER)
    with server.fork({}, GIB, build=lambda *_: {"output": "x" * (1 << 20)}, readable=[path]) as worker:
        with pytest.raises(CandidateFailure) as caught:
            worker.request({"op": "import", "solution": str(path)}, 20)
    assert caught.value.status is Status.OUT_OF_MEMORY, caught.value.message


def test_requests_for_builds_have_a_limit(server, tmp_path):
    """Each lengthens the candidate's time by what it takes."""
    (tmp_path / "1_19.py").write_text("")
    builder = ExtensionBuilder(
        read_solution(tmp_path / "1_19.py"), BuildContext(server, None, torch.__version__, 60, GIB)
    )
    for _ in range(1000):
        assert "raised" in builder({}, tmp_path)
    with pytest.raises(CandidateFailure, match="more than 1,000 builds"):
        builder({}, tmp_path)


def test_the_outbox_cannot_be_cut(tmp_path):
    outbox = SharedTensors(torch.device("cpu"), [torch.zeros(4)])
    with pytest.raises(PermissionError):
        os.ftruncate(outbox.fds[0], 0)
    outbox.close()


def test_too_many_processes_end_the_candidate(attempt, monkeypatch):
    monkeypatch.setattr("harness.process.worker_limits._MAX_TASKS", 40)
    with pytest.raises(CandidateFailure) as caught:
        attempt("for _ in range(60): subprocess.Popen(['sleep', '60'], start_new_session=True)\nwhile True: pass")
    assert caught.value.status is Status.CRASHED and "processes and threads; the limit is 40" in caught.value.message


def test_too_many_files_end_the_candidate(attempt, monkeypatch):
    monkeypatch.setattr("harness.process.worker_limits.MAX_FILES", 50)
    with pytest.raises(CandidateFailure) as caught:
        attempt("for i in range(60): open(str(i), 'w').close()\nwhile True: pass")
    assert caught.value.status is Status.CRASHED and "files" in caught.value.message


@pytest.mark.parametrize(
    "status, hidden",
    [
        (Status.OUT_OF_MEMORY, "m = mmap.mmap(-1, 2 << 30)\nfor at in range(0, 1 << 30, 1 << 20): m[at] = 1\n"),
        (Status.CRASHED,
         "for i in range(9):\n"
         "    fd = os.open(str(i), os.O_RDWR | os.O_CREAT)\n"
         "    os.truncate(fd, 1 << 20)\n"
         "    m = libc.mmap(None, 1 << 20, 1, 1, fd, 0)\n"
         "    os.unlink(str(i)), os.close(fd)\n"),
    ],
    ids=["memory", "disk"],
)  # fmt: skip
def test_files_without_a_name_that_are_only_mapped_count(attempt, monkeypatch, status, hidden):
    monkeypatch.setattr("harness.process.memory_cgroup.make", lambda limit: None)
    monkeypatch.setattr("harness.process.worker_limits.MAX_DISK_BYTES", 8 << 20)
    monkeypatch.setattr("harness.process.procfs.os.stat", _without_map_files(os.stat))
    head = "import ctypes, mmap, time\nlibc = ctypes.CDLL(None)\nlibc.mmap.restype = ctypes.c_void_p\n"
    head += "libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]\n"
    with pytest.raises(CandidateFailure) as caught:
        attempt(f"{head}{hidden}time.sleep(60)", timeout_s=20)
    assert caught.value.status is status, caught.value.message


def _without_map_files(stat):
    """As for a user who may not look behind a mapping."""

    def refused(path, **options):
        if "map_files" in str(path):
            raise PermissionError(path)
        return stat(path, **options)

    return refused


@pytest.mark.slow
def test_no_key_of_the_users_is_in_an_environment_or_in_memory(monkeypatch, tmp_path):
    monkeypatch.setenv("OPENAI_API_KEY", "sesame-open")
    names = "CUDA_SECRET_TOKEN RAY_PASSWD RAY_PASSPHRASE KERNELBENCH_DB_PASS NVIDIA_NGC_PAT CUDA_PWD TORCH_HUB_AUTH"
    names += " MKL_CREDS TORCH_PIN RAY_X XDG_X LC_X KERNELBENCH_X"
    for name in names.split():
        monkeypatch.setenv(name, "sesame-open")
    monkeypatch.setenv("VIRTUAL_ENV", "https://me:sesame-open@host/simple")
    path = tmp_path / "module.py"
    path.write_text(
        "found = []\n"
        "found.append(open('/proc/self/environ', 'rb').read())\n"
        "memory = open('/proc/self/mem', 'rb', 0)\n"
        "for line in open('/proc/self/maps'):\n"
        "    begin, end = (int(part, 16) for part in line.split()[0].split('-'))\n"
        "    try:\n"
        "        memory.seek(begin)\n"
        "        found.append(memory.read(min(end - begin, 64 << 20)))\n"
        "    except (OSError, OverflowError, ValueError):\n"
        "        pass\n"
        "secret = bytes(reversed(b'nepo-emases'))  # not in memory before\n"
        "assert not any(secret in data for data in found)\n"
        "class ModelNew: pass\n"
    )
    with ForkServer() as server, server.fork({}, GIB, readable=[tmp_path]) as worker:
        worker.request({"op": "import", "solution": str(path)}, 60)


@pytest.mark.slow
def test_shared_memory_that_hardly_anybody_maps_is_noticed(attempt, monkeypatch):
    monkeypatch.setattr("harness.process.memory_cgroup.make", lambda limit: None)
    monkeypatch.setattr("harness.process.procfs.os.stat", _without_map_files(os.stat))
    hidden = (
        "import mmap, time\nlibc = ctypes.CDLL(None)\n"
        "libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]\n"
        "for _ in range(5):\n"  # never much of it in a file that is open
        "    fd = os.memfd_create('x')\n"
        "    for _ in range(340): os.write(fd, b'x' * (1 << 20))\n"
        "    libc.mmap(None, 4096, 1, 1, fd, 0), os.close(fd)\n"
        "time.sleep(60)"
    )
    with pytest.raises(MachineFault, match=r"shared memory of this machine grew by [12]\.[0-9] GB"):
        attempt(hidden, timeout_s=30)


def test_folders_nested_too_deep_end_the_candidate_and_go(attempt):
    source = "for _ in range(1500): os.mkdir('d'); os.chdir('d')\nwhile True: pass"
    with pytest.raises(CandidateFailure, match="more than 64 deep") as caught:
        attempt(source)
    assert caught.value.status is Status.CRASHED


def test_what_is_left_behind_is_counted_and_removed(attempt):
    worker = attempt("open('litter', 'wb').write(b'x' * 5000)\nsubprocess.Popen(['sleep', '60'])")
    assert worker.left["processes"] == 1 and worker.left["files"] == 1 and worker.left["bytes"] >= 5000
    assert not worker.scratch.exists()


def state(pid):
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_worker_stands_still_while_it_owes_no_answer(server, tmp_path):
    path = tmp_path / "module.py"
    path.write_text(
        "import threading, time\nimport subprocess\n"
        "spin = subprocess.Popen(['sh', '-c', 'while :; do :; done'], start_new_session=True)\n"
        "def run():\n    while True: pass\n"
        "threading.Thread(target=run, daemon=True).start()\nprint(spin.pid)\nclass ModelNew: pass\n"
    )
    with server.fork({}, GIB, readable=[path]) as worker:
        worker.request({"op": "import", "solution": str(path)}, 20)
        pids = [worker._pid, int(worker.output)] if worker.output else [worker._pid]
        deadline = time.monotonic() + 5
        while (states := {state(pid) for pid in pids}) != {"T"} and time.monotonic() < deadline:
            time.sleep(0.01)
        assert states == {"T"}
        worker.request({"op": "import", "solution": str(path)}, 20)


@pytest.mark.gpu
def test_a_confined_worker_uses_the_gpu_and_the_outbox(judged, problem, server):
    """If this fails, take names out of ``sandbox.LAYERS`` to find the layer that the driver does not bear."""
    source = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x): return x.clamp(min=0)\n"
    result = judged(problem("1/19"), source, device="cuda", workload="small", track="open")
    assert result.status is Status.OK, result.message
    assert set(result.conditions["isolation"]) == set(server.isolation)


def test_nobody_goes_before_others_by_a_right_of_the_user_to_do_so():
    """A user who may make sound often has it, and a candidate's threads went before all others of the machine."""
    code = f"""
import resource, types
from harness.process import sandbox
limits = resource.RLIMIT_RTPRIO, resource.RLIMIT_NICE
try:
    for limit in limits: resource.setrlimit(limit, (30, 30))
except ValueError: raise SystemExit(77)
sandbox._limits(types.SimpleNamespace(max_file_bytes={1 << 30}))
assert [resource.getrlimit(limit) for limit in limits] == [(0, 0), (0, 0)]
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    if done.returncode == 77:
        pytest.skip("this user may not raise limits")
    assert done.returncode == 0, done.stderr


def test_without_landlock_system_calls_keep_a_candidate_from_what_it_would_have(tmp_path):
    """A kernel may have Landlock of version 6 and not let it be entered: signals then reached all of the user's."""
    theirs = tmp_path / "theirs"
    theirs.write_text("kept")
    code = f"""
import contextlib, os
from harness.process import sandbox
from harness.process.sandbox import landlock
landlock.version_in_kernel = lambda: 6
if "system_calls" not in sandbox.available(): raise SystemExit(77)
sandbox.enter(["system_calls"], sandbox.Confinement())
for reach in (lambda: os.kill(os.getppid(), 0), lambda: os.truncate({str(theirs)!r}, 0)):
    with contextlib.suppress(OSError):
        reach()
        os._exit(1)
os._exit(0)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    if done.returncode == 77:
        pytest.skip("this machine does not allow the layer 'system_calls'")
    assert done.returncode == 0 and theirs.read_text() == "kept", done.stderr


def test_where_a_limit_is_lower_already_it_stays_and_all_else_is_as_elsewhere(server):
    """In a container without core dumps no source was read, and no candidate had limits."""
    if not {"limits", "privileges"} <= server.isolation.keys():
        pytest.skip("this machine does not allow the layers 'limits' and 'privileges'")
    code = """
import resource
from harness.isolated_call import apart
from harness.process import sandbox
sandbox.enter(["privileges"], sandbox.Confinement())  # with which limits could be raised
for limit, most in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_AS, 1 << 29), (resource.RLIMIT_FSIZE, 1 << 20)):
    resource.setrlimit(limit, (most, most))
assert apart("posixpath:basename", "/a/b") == "b"
assert "limits" in sandbox.available()
sandbox.enter(["limits"], sandbox.Confinement(max_file_bytes=1 << 30))
assert resource.getrlimit(resource.RLIMIT_CORE) == (0, 0)
assert resource.getrlimit(resource.RLIMIT_FSIZE) == (1 << 20, 1 << 20)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("version", [1, 2, 3])
def test_nobody_cuts_off_a_file_that_is_not_open_for_writing_whatever_landlock_knows(version, tmp_path):
    """Landlock before its version 3 knows of no truncation, and any file of the user could be emptied there."""
    theirs, own = tmp_path / "theirs", tmp_path / "own"
    own.mkdir()
    theirs.write_text("kept")
    code = f"""
import contextlib, os
from harness.process import sandbox
from harness.process.sandbox import landlock
if {version} > landlock.version_in_kernel(): raise SystemExit(77)
landlock.version_in_kernel = lambda: {version}
confinement = landlock.Confinement(readable=({str(theirs)!r},), writable=({str(own)!r},))
sandbox.enter(["files", "system_calls"], confinement)
with open({str(own / "a")!r}, "w") as file: file.write("own")
for flags in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_ACCMODE):
    with contextlib.suppress(OSError): os.open({str(theirs)!r}, flags | os.O_TRUNC)
with contextlib.suppress(OSError): os.truncate({str(theirs)!r}, 0)
os._exit(0)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    if done.returncode == 77:
        pytest.skip(f"this kernel has no Landlock of version {version}")
    assert done.returncode == 0, done.stderr
    assert (theirs.read_text(), (own / "a").read_text()) == ("kept", "own")
