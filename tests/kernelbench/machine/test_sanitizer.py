"""What compute-sanitizer prints, read; and what is said where it is not there."""

import ast
import json
import stat
import sys

import pytest
from linear_time import MEGABYTE, in_linear_time

from harness.problem.module import ProblemId
from harness.solution.discover import read_solution
from kernelbench import suite
from kernelbench.cli import main
from kernelbench.machine import sanitizer
from kernelbench.machine.sanitizer import ToolError
from kernelbench.views.timing_text import sanitized

MEMCHECK = """a line of the program
========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 4 bytes
=========     at relu(const float *, float *, unsigned long)+0x90 in mine/19_relu.cu:7
=========     by thread (255,0,0) in block (1023,0,0)
=========     Access at 0x7f2a4c400000 is out of bounds
=========     and is 1 bytes after the nearest allocation at 0x7f2a4c000000 of size 4,194,304 bytes
=========     Saved host backtrace up to driver entry point at kernel launch time
=========
========= Invalid __global__ write of size 4 bytes
=========     at relu(const float *, float *, unsigned long)+0x90 in mine/19_relu.cu:7
=========     by thread (254,0,0) in block (1023,0,0)
=========
========= ERROR SUMMARY: 2 errors
"""
RACECHECK = """========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at total(float *)+0x1a0 in sum.cu:12
=========     and Read access at total(float *)+0x1f0 in sum.cu:15 [124 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
CLEAN = "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"


def test_equal_errors_are_one_with_its_line_and_count():
    (error,) = sanitizer.read("memcheck", MEMCHECK)
    assert error == {
        "check": "memcheck",
        "error": "Invalid __global__ write of size 4 bytes",
        "kernel": "relu(const float *, float *, unsigned long)",
        "place": "mine/19_relu.cu:7",
        "count": 2,
    }


def test_a_race_names_where_it_is_written():
    (error,) = sanitizer.read("racecheck", RACECHECK)
    assert (error["kernel"], error["place"], error["count"]) == ("total(float *)", "sum.cu:12", 1)


def test_without_line_information_there_is_no_place():
    (error,) = sanitizer.read("memcheck", MEMCHECK.replace(" in mine/19_relu.cu:7", ""))
    assert error["place"] == "" and error["kernel"].startswith("relu(")


def test_no_errors_and_no_end_are_not_the_same():
    assert sanitizer.read("initcheck", CLEAN) == []
    with pytest.raises(ToolError, match="came to no end; it says:\n  Unable to find"):
        sanitizer.read("initcheck", "Unable to find a device")


def test_errors_as_text():
    text = sanitized(sanitizer.read("memcheck", MEMCHECK))
    assert "memcheck: Invalid __global__ write of size 4 bytes, 2 times, in relu(" in text and "19_relu.cu:7" in text
    assert "no error" in sanitized([]) and sanitized("not run: why") == "compute-sanitizer: not run: why"


@pytest.fixture
def arguments(tmp_path, examples):
    path = tmp_path / "1_19.cpp"
    path.write_text((examples / "cpp" / "relu.cpp").read_text())
    return suite.find("1/19")[0], read_solution(path, problem=ProblemId(1, 19)), "small", "fp32", "cpu"


@pytest.fixture
def tool(tmp_path, monkeypatch):
    """A program in the place of the tool, which keeps what it was asked to do; ``tool(LOG, ...)`` is what it says."""

    def tool(memcheck, others, printed=""):
        path = tmp_path / "bin" / "compute-sanitizer"
        path.parent.mkdir()
        path.write_text(
            f"#!{sys.executable}\nimport os, sys\n"
            f"asked = repr((sys.argv, os.environ.get('PYTORCH_NO_CUDA_MEMORY_CACHING')))\n"
            f"open({str(tmp_path / 'asked')!r}, 'a').write(asked + '\\n')\n"
            "where = sys.argv.index('--log-file') + 1 if '--log-file' in sys.argv else None\n"
            "log = open(sys.argv[where], 'w') if where else sys.stdout\n"
            f"log.write({memcheck!r} if 'memcheck' in sys.argv else {others!r})\nprint({printed!r})\n"
        )
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", str(path.parent))

    return tool


def test_it_is_run_once_for_each_check_over_the_solution(arguments, tmp_path, tool):
    tool(MEMCHECK, CLEAN)
    assert [error["check"] for error in sanitizer.errors(*arguments)] == ["memcheck"]
    asked = (tmp_path / "asked").read_text().splitlines()
    assert len(asked) == 3 and all("harness.worker.profile_target" in line and "1/19" in line for line in asked)


def test_each_tensor_is_an_allocation_and_errors_of_the_driver_do_not_count(arguments, tmp_path, tool):
    """PyTorch's probes for functions of the driver counted, and writes into a neighbour in its cache did not."""
    tool(CLEAN, CLEAN)
    sanitizer.errors(*arguments)
    asked = [ast.literal_eval(line) for line in (tmp_path / "asked").read_text().splitlines()]
    assert [cached for _, cached in asked] == ["1"] * 3
    options = {line[2]: "--report-api-errors no" in " ".join(line) for line, _ in asked}
    assert options == {"memcheck": True, "racecheck": False, "initcheck": False}


def test_what_a_candidate_prints_is_no_word_of_the_tool(arguments, tool):
    """Errors that it printed were told as its kernels'."""
    tool(CLEAN, CLEAN, printed=MEMCHECK)
    assert sanitizer.errors(*arguments) == []


def test_a_candidate_that_prints_the_tools_end_has_none(arguments, tool):
    """One that printed it, and ended before its kernels, had no error."""
    tool("========= COMPUTE-SANITIZER\n", CLEAN, printed=CLEAN)
    with pytest.raises(ToolError, match="memcheck came to no end"):
        sanitizer.errors(*arguments)


def test_without_it_the_message_says_what_to_install(arguments, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.delenv("CUDA_PATH", raising=False)
    monkeypatch.setattr(sanitizer, "_PLACES", ())
    with pytest.raises(ToolError, match="install Compute Sanitizer"):
        sanitizer.errors(*arguments)


@pytest.mark.slow
def test_on_a_cpu_the_command_says_that_it_was_not_run(arguments, capsys):
    command = ["time", str(arguments[1].path), "--device", "cpu", "--sanitize", "--json"]
    with pytest.raises(SystemExit) as ended:
        main(command)
    record = json.loads(capsys.readouterr().out)
    assert ended.value.code == 0 and record["sanitizer"] == "not run: compute-sanitizer needs a GPU"


@pytest.mark.parametrize("piece", ["at ", "at x", "+0x", "at x+0x1 in a:"])
def test_a_megabyte_of_one_line_is_read_in_linear_time(piece):
    with in_linear_time():
        sanitizer.read("memcheck", f"========= {piece * (MEGABYTE // len(piece))}\n========= ERROR SUMMARY: 0 errors")
