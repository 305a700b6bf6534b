"""The wait for what others, and the kernel, do on the cores of this process."""

import os
import subprocess
import sys
import time

import pytest

from harness.judge.idle_cores import share_of_others, wait_for_idle_cores


def test_somebody_at_work_on_these_cores_is_waited_for_and_not_for_ever():
    cores = os.sched_getaffinity(0)
    core = max(cores)
    os.sched_setaffinity(0, {core})
    busy = subprocess.Popen([sys.executable, "-I", "-S", "-c", "while True: pass"])  # on the same core
    try:
        time.sleep(0.1)
        begin = time.monotonic()
        assert not wait_for_idle_cores(0.2)
        assert 0.2 <= time.monotonic() - begin < 2.0
    finally:
        busy.kill()
        busy.wait()
        os.sched_setaffinity(0, cores)


def test_who_works_on_other_cores_does_not_count(monkeypatch):
    work = iter(range(0, 10_000, 10))
    lines = "cpu  {0} 0 0 0 0 0 0 0 0 0\ncpu0 5 0 0 {0} {0} 0 0 0 0 0\ncpu1 {0} 0 0 0 0 0 0 0 0 0\n"
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0})
    _pretend_stat(monkeypatch, lambda: lines.format(next(work)))
    assert wait_for_idle_cores(0.0)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    assert not wait_for_idle_cores(0.0)


def test_the_kernels_own_work_counts_and_waiting_for_a_disk_does_not(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0})
    for line, is_idle in (
        ("cpu0 1 1 {0} 1 1 0 0 0 0 0", False),
        ("cpu0 1 1 1 1 1 0 {0} 0 0 0", False),
        ("cpu0 1 1 1 1 {0} 0 0 0 0 0", True),
    ):
        work = iter(range(0, 10_000, 10))
        _pretend_stat(monkeypatch, lambda line=line, work=work: line.format(next(work)) + "\n")
        assert wait_for_idle_cores(0.0) is is_idle


@pytest.mark.parametrize("busy_cores, least, most", [(0, 0.0, 0.0), (1, 0.3, 0.6), (2, 0.8, 1.0)])
def test_the_share_that_others_have_is_of_the_cores_of_this_process(monkeypatch, busy_cores, least, most):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    begin = time.monotonic()

    def content():
        ticks = int((time.monotonic() - begin) * os.sysconf("SC_CLK_TCK")) + 1
        return "".join(f"cpu{core} {ticks if core < busy_cores else 0} 0 0 {ticks} 0 0 0 0 0 0\n" for core in range(4))

    _pretend_stat(monkeypatch, content)
    shares = [share_of_others() for _ in range(5)]
    assert least <= sum(shares) / 5 <= most


def test_where_the_system_does_not_say_cores_count_as_idle(monkeypatch):
    def fails():
        raise FileNotFoundError

    _pretend_stat(monkeypatch, fails)
    assert wait_for_idle_cores(0.0)


def _pretend_stat(monkeypatch, content):
    import io

    from harness.judge import idle_cores

    monkeypatch.setattr(idle_cores, "open", lambda path, encoding: io.StringIO(content()), raising=False)
