"""A worker that does not end: whose fault that is."""

import os
import subprocess
import sys
import time

from harness.faults import MachineFault
from harness.process.procfs import cpu_times_ns
from harness.process.worker_failures import NOT_BEGUN, death, endless
from harness.result import CandidateFailure, Status


def test_who_has_the_kernel_work_at_its_end_fails_by_itself():
    """Ninety thousand locks of a file took minutes to close: a wrong candidate was not evaluated instead."""
    me = [os.getpid()]
    before = cpu_times_ns(me)
    while time.process_time_ns() - before[me[0]] < 60_000_000:
        pass
    failure = endless(me, before, waited_s=0.1, patience_s=0)
    assert isinstance(failure, CandidateFailure) and failure.status is Status.CRASHED
    assert "does not end within 0.1 s of SIGKILL: it holds too much" in failure.message


def test_a_candidate_whose_end_is_slow_is_waited_for_so_that_it_slows_nobody_after_it():
    """Files in a million pieces: the next candidate was timed beside the process that still died."""
    works = "import time; end = time.time() + 1\nwhile time.time() < end: pass"
    dying = subprocess.Popen([sys.executable, "-c", works])
    before = cpu_times_ns([dying.pid])
    time.sleep(0.5)
    assert isinstance(endless([dying.pid], before, waited_s=0.5, patience_s=30), CandidateFailure)
    assert dying.poll() is not None


def test_who_cannot_begin_is_no_candidates_fault():
    """No room for a namespace, or for a rule of Landlock: an honest candidate had `crashed`."""
    failure = death(NOT_BEGUN, "Traceback (most recent call last):\nOSError: [Errno 12] Cannot allocate memory\n")
    assert isinstance(failure, MachineFault) and "[Errno 12] Cannot allocate memory" in str(failure)
    assert death(1, "").status is death(-9, "").status is Status.CRASHED


def test_who_waits_for_a_driver_or_a_disk_is_the_machines():
    me = [os.getpid()]
    assert isinstance(endless(me, cpu_times_ns(me), waited_s=30.0), MachineFault)
    assert isinstance(endless([], {}, waited_s=30.0), MachineFault)
