"""Which compilers there are, also where the machine has no process left for the question."""

import errno
import os
import subprocess

import pytest

from harness.compile import toolchain
from harness.faults import MachineFault


@pytest.fixture
def asked(monkeypatch):
    """Results of starting a compiler, in turn."""
    answers = []

    def run(command, **_):
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return subprocess.CompletedProcess(command, 0, stdout=answer)

    monkeypatch.setattr(toolchain.subprocess, "run", run)
    monkeypatch.setattr(toolchain, "program", lambda name: f"/usr/bin/{name}")
    toolchain.host_compiler.cache_clear()
    yield answers
    toolchain.host_compiler.cache_clear()


@pytest.mark.parametrize("number", [errno.EAGAIN, errno.ENOMEM])
def test_a_compiler_that_cannot_be_started_for_now_is_not_missing(asked, number):
    """A candidate had all processes for a moment: no `.cpp` of its neighbours was evaluated in that run."""
    asked += [OSError(number, os.strerror(number)), "c++ 12.2.0"]
    with pytest.raises(MachineFault, match="cannot start /usr/bin/.*: "):
        toolchain.host_compiler()
    assert toolchain.host_compiler().version == "12.2.0" and toolchain.host_compiler()


def test_one_that_hangs_is_there_all_the_same(asked):
    asked.append(subprocess.TimeoutExpired("c++", 60))
    with pytest.raises(MachineFault, match="does not tell its version within 60 s"):
        toolchain.host_compiler()


def test_one_that_is_no_program_makes_way_for_the_next(asked):
    asked += [OSError(errno.ENOEXEC, "Exec format error"), "g++ 12.2.0"]
    assert toolchain.host_compiler().version == "12.2.0"
