"""Calls in a process that may die of them."""

import os
import signal

import pytest

from harness import isolated_call as module
from harness.faults import MachineFault
from harness.isolated_call import ApartError, TooMuch, apart
from harness.process.spawn import start_server


def test_values_come_back_and_errors_with_their_traceback():
    assert apart("posixpath:basename", "/a/\udcffb") == "\udcffb"
    with pytest.raises(ApartError, match="FileNotFoundError"):
        apart("os:listdir", "/nowhere")


def test_a_warning_of_the_compiler_quotes_nothing_of_a_source(capfd):
    """Names and lines of sources are other people's text, and a log of CI acts on some."""
    isolated = module._Other()
    assert isolated.call("warnings:warn", ("::error::owned",)) is None
    isolated._end()
    assert capfd.readouterr().err == ""


def test_a_process_that_does_not_start_is_told_as_that(monkeypatch):
    """Each source was refused for the memory that it takes to read."""
    monkeypatch.setattr(module, "start_server", lambda _, connection: start_server("harness.nothing", connection))
    with pytest.raises(MachineFault, match=r"does not start \(status 1\)"):
        module._Other().call("posixpath:basename", ("/a/b",))


def test_what_takes_too_long_is_ended_in_the_midst_of_a_call_that_no_signal_handler_would_interrupt(monkeypatch):
    monkeypatch.setattr(module, "CPU_SECONDS", 1)
    with pytest.raises(TooMuch, match="1 s of processor time"):
        apart("re:match", "(a+)+$", "a" * 60 + "b")
    assert apart("posixpath:basename", "/a/b") == "b"


def test_what_takes_too_much_memory_is_ended_and_the_next_call_works():
    with pytest.raises(TooMuch, match="1 GiB of memory"):
        apart("operator:mul", [0], 1 << 30)
    assert apart("posixpath:basename", "/a/b") == "b"


def test_a_process_that_somebody_kills_is_started_again():
    pid = apart("os:getpid")
    os.kill(pid, signal.SIGKILL)
    assert apart("os:getpid") not in (pid, os.getpid())


@pytest.mark.parametrize("raised", [KeyboardInterrupt, TimeoutError])
def test_a_call_that_a_signal_interrupts_answers_no_other(raised):
    """Each later call got the answer of the one before it: a source was of another's language and device."""

    def interrupted(*_):
        raise raised

    before = signal.signal(signal.SIGALRM, interrupted)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        with pytest.raises(raised):
            apart("time:sleep", 2)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert [apart("posixpath:basename", f"/a/{name}") for name in "bc"] == ["b", "c"]


def test_a_fork_has_a_process_of_its_own():
    pid = apart("os:getpid")
    if (child := os.fork()) == 0:
        os._exit(apart("os:getpid") == pid)
    assert os.waitpid(child, 0)[1] == 0 and apart("os:getpid") == pid
