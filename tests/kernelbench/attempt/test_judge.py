"""Judge one file: whatever the system says is an attempt."""

import errno

import pytest

from kernelbench import suite
from kernelbench.attempt.judge import judge_file
from kernelbench.attempt.request import Request


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "1_19.py"
    path.write_text("class ModelNew: pass\n")
    return str(path)


def test_a_folder_of_problems_that_no_file_system_takes_is_a_wrong_call(file):
    """The error ended the warm server's answer, and nothing was told but that."""
    attempt, result = judge_file(Request(file, problem_dir="a" * 300))
    assert attempt["exit_status"] == 2 and "File name too long" in attempt["error"]["text"] and result is None


def test_a_fault_of_the_disk_is_the_machines(file, monkeypatch):
    def fails(folder):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(suite, "names", fails)
    attempt, _ = judge_file(Request(file))
    assert attempt["exit_status"] == 3 and "Input/output error" in attempt["error"]["text"]
