"""CPU time and waiting of a worker's threads between two moments in which it rests."""

import os
import signal
import subprocess
import sys
import time

from harness.process.procfs import read_text, tasks
from harness.process.worker_rest import WorkerRest

# Its first thread works for long, its second one for a short time; then that one takes the first one's number.
TAKES_A_NUMBER = """
import os, threading, time

def work(seconds):
    while time.thread_time() < seconds:
        pass

def second():
    work(0.02)
    os.write(1, b"1")
    os.read(0, 1)
    os.execv("/bin/cat", ["cat"])

work(0.5)
threading.Thread(target=second).start()
threading.Event().wait()
"""


ENDS_ITS_FIRST_THREAD = """
import ctypes, os, threading

def second():
    os.write(1, b"1")
    threading.Event().wait()

threading.Thread(target=second).start()
ctypes.CDLL(None).pthread_exit(None)
"""


def test_a_first_thread_that_has_ended_has_nothing_to_stop():
    """It stays in the process as long as others do, and a rehearsal with one more thread takes longer."""
    with subprocess.Popen([sys.executable, "-c", ENDS_ITS_FIRST_THREAD], stdin=-1, stdout=-1) as process:
        try:
            assert process.stdout.read(1) == b"1"
            end = time.monotonic() + 10
            while read_text(f"/proc/{process.pid}/stat").rpartition(")")[2].split()[0] != "Z":
                assert time.monotonic() < end
                time.sleep(0.01)
            assert len(tasks(process.pid)) == 2 and WorkerRest(process.pid).threads == 1
        finally:
            process.kill()


def test_a_thread_that_takes_the_number_of_another_did_not_give_time_back():
    with subprocess.Popen([sys.executable, "-c", TAKES_A_NUMBER], stdin=-1, stdout=-1) as process:
        try:
            rest = WorkerRest(process.pid)

            def rests():
                rest.stop(lambda: os.kill(process.pid, signal.SIGSTOP))
                rest.wait(lambda: False)

            assert process.stdout.read(1) == b"1"
            rests()
            assert rest.busiest_ms >= 500
            os.kill(process.pid, signal.SIGCONT)
            process.stdin.write(b"go")  # one byte for the thread, one for what it becomes
            process.stdin.flush()
            assert process.stdout.read(1) == b"o"
            rests()
            assert 0 < rest.busiest_ms < 500
            assert rest.waited >= 1
        finally:
            process.kill()
