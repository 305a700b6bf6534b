"""Memory, tasks and ends of processes, from /proc."""

import os
import signal
import subprocess
import sys
import time

from harness.process import procfs
from harness.process.procfs import (
    Usage,
    _left_by_groups,
    free_tasks,
    is_ending,
    listed,
    read_text,
    tasks_that_stop,
    usage,
)


def test_nobody_uses_nothing():
    assert usage([2**22 + 1]) == Usage()
    used = usage([os.getpid()])
    assert used.private > 10 << 20 and not used.moving


def test_of_a_crowd_no_more_is_listed_than_asked_for():
    sleepers = "for i in 1 2 3 4; do sleep 60 & done; echo; wait"
    with subprocess.Popen(["sh", "-c", sleepers], stdout=subprocess.PIPE) as shell:
        shell.stdout.readline()
        family = listed(shell.pid)
        assert (len(family.processes), family.tasks, family.ended) == (5, 5, False)
        crowd = listed(shell.pid, most=3)
        assert crowd.processes == [shell.pid] and crowd.tasks == 5
        for process in family.processes:
            os.kill(process, signal.SIGKILL)


def test_it_is_told_where_threads_end_before_anybody_has_looked_at_them(monkeypatch):
    """A third of the looks saw no memory, and a sixth no child, where threads each start the next and end."""
    monkeypatch.setattr(procfs, "_status", lambda process: {"Threads": "2", "State": "Z"})
    assert usage([os.getpid()]).moving
    threads = iter([["1", "2"], ["1", "3"]])
    monkeypatch.setattr(procfs, "tasks", lambda process: next(threads))
    monkeypatch.setattr(procfs, "read_text", lambda path: "")
    assert listed(os.getpid()).ended


def test_what_was_sent_to_swap_counts_as_private(monkeypatch):
    """madvise sends it there at will: 2.6 GB were held under a limit of 1."""
    before = usage([os.getpid()]).private
    status = procfs._status
    monkeypatch.setattr(procfs, "_status", lambda process: {**status(process), "VmSwap": f"{1 << 20} kB"})
    assert usage([os.getpid()]).private - before >= 1 << 29


def test_cores_are_those_that_this_process_may_run_on():
    code = (
        "import os; from harness.process.procfs import usable_cores; "
        "os.sched_setaffinity(0, {0}); print(usable_cores())"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "1\n"


def test_memory_that_is_free_is_that_of_the_smallest_control_group(tmp_path, monkeypatch):
    group = tmp_path / "outer" / "inner"
    group.mkdir(parents=True)
    for folder, limit in ((group, "max"), (group.parent, "3000")):
        (folder / "memory.max").write_text(f"{limit}\n")
        (folder / "memory.current").write_text("2500\n")
        stat = "anon 1800\nfile 600\ninactive_file 300\nactive_file 40\nslab_reclaimable 60\nslab_unreclaimable 7\n"
        (folder / "memory.stat").write_text(stat)
    monkeypatch.setattr("harness.process.procfs.read_text", _reading({"/proc/self/cgroup": "0::/outer/inner\n"}))
    assert list(_left_by_groups(tmp_path)) == [900]


def _reading(replaced):
    return lambda path: replaced[path] if path in replaced else read_text(path)


def test_a_process_whose_first_thread_ended_runs_on():
    """It was taken for one that somebody else had killed, and its failure was tried again."""
    code = (
        "import ctypes, threading, time; threading.Thread(target=lambda: (print(flush=True), time.sleep(60))).start()\n"
        "ctypes.CDLL(None).pthread_exit(None)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        while read_text(f"/proc/{process.pid}/stat").rpartition(")")[2].split()[0] != "Z":
            time.sleep(0.01)
        assert not is_ending(process.pid) and len(tasks_that_stop(process.pid)) == 1
        process.kill()
        assert is_ending(process.pid)


def test_a_process_that_was_killed_is_ending_before_anybody_asks_for_its_status():
    process = subprocess.Popen(["sleep", "60"])
    assert not is_ending(process.pid)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert is_ending(process.pid)
    process.wait()
    assert is_ending(process.pid)


def test_huge_pages_are_shared_memory(monkeypatch):
    """Their mappings name files in memory, of which the larger figure counts: as private memory they counted twice."""
    status = "Name:\tx\nRssAnon:\t1024 kB\nRssShmem:\t512 kB\nHugetlbPages:\t4096 kB\nThreads:\t1\n"
    monkeypatch.setattr("harness.process.procfs.read_text", lambda path: status)
    found = usage([1])
    assert (found.private, found.shared) == (1 << 20, 9 << 19)


def test_processes_that_a_user_may_have_are_those_of_its_limit_and_its_groups(tmp_path):
    own = tmp_path / read_text("/proc/self/cgroup").partition("::")[2].strip().lstrip("/")
    own.mkdir(parents=True, exist_ok=True)
    (own / "pids.max").write_text("900\n")
    (own / "pids.current").write_text("100\n")
    assert free_tasks(tmp_path) == 800
    code = "import resource; resource.setrlimit(resource.RLIMIT_NPROC, (700, 700)); "
    code += "import pathlib; from harness.process.procfs import free_tasks; "
    code += f"print(free_tasks(pathlib.Path({str(tmp_path)!r})))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "700\n"
