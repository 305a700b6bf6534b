import os
import signal
import subprocess
import sys
import time

import pytest

from harness.integrity import runs_unasked
from harness.process.procfs import turns
from harness.result import CandidateFailure

MS = 1_000_000


def test_cpu_time_of_a_process_that_was_never_given_a_core_again_is_the_hypervisors():
    assert runs_unasked.check({7: 0}, {7: 5 * MS}, resumed=False) == 5.0


def test_a_little_cpu_time_is_allowed_to_who_leaves_its_core():
    assert runs_unasked.check({7: 0}, {7: MS // 4}, resumed=True) == 0.25


@pytest.mark.parametrize("now", [{7: MS}, {}, {7: 0, 8: 0}], ids=["ran", "gone", "another process"])
def test_who_ran_while_suspended_is_rejected(now):
    with pytest.raises(CandidateFailure) as failure:
        runs_unasked.check({7: 0}, now, resumed=True)
    assert failure.value.rule == "runs_unasked"


def test_turns_grow_only_while_a_process_runs():
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        time.sleep(0.3)
        os.kill(process.pid, signal.SIGSTOP)
        time.sleep(0.3)
        stopped = turns([process.pid])
        if not stopped:
            pytest.skip("this kernel does not count turns")
        time.sleep(0.1)
        assert turns([process.pid]) == stopped
        os.kill(process.pid, signal.SIGCONT)
        time.sleep(0.3)
        ((ns, _, count),), ((before_ns, _, before),) = turns([process.pid]).values(), stopped.values()
        assert count > before and 0.1e9 < ns - before_ns < 2e9
    finally:
        process.kill()
        process.wait()
    assert turns([process.pid]) == {}
