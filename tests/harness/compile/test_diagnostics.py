"""Compiler errors point at the solution's own lines."""

import os
import signal
import subprocess
import tracemalloc

import pytest

from harness.compile.diagnostics import compiler_errors, killed_by

SOLUTION = """import torch
CUDA = r'''
__global__ void f(float* x) {
    x[0] = undefined_name;
}
void g() {
    x[0] = undefined_name;
    other();
}
'''
"""


@pytest.mark.parametrize(
    "line",
    ["c++: fatal error: Killed signal terminated program cc1plus", "cc1plus: internal compiler error: Killed", "Killed",
     "sh: line 1:  2746 Killed                  cicc", "nvcc error   : 'cicc' died due to signal 9 (Kill signal)"],
)  # fmt: skip
def test_who_ended_a_compiler_is_told_by_its_driver(line):
    assert killed_by(1, f"a.cpp:1:2: warning: x\n{line}\nninja: build stopped\n") == "SIGKILL"


def test_a_source_does_not_have_its_compiler_say_that_it_was_killed(tmp_path):
    """`#error Killed` was told as a compiler that somebody had killed, and built twice."""
    (source := tmp_path / "k.cpp").write_text(
        '#error Killed\n#warning Killed\nstatic_assert(0, "c++: fatal error: Killed signal terminated program a");\n'
        '#error nvcc error : \'a\' died due to signal 9\n#include "sh: 1 Killed"\n'
    )
    log = subprocess.run(["c++", "-c", source], capture_output=True, text=True, cwd=tmp_path).stderr
    assert log.count("Killed") >= 4 and not killed_by(1, log)
    assert killed_by(-signal.SIGKILL, "") == "SIGKILL" and not killed_by(0, "Killed")


def test_errors_in_a_generated_file_are_placed_in_the_solution_by_their_text_and_neighbours(tmp_path):
    solution = tmp_path / "relu.py"
    solution.write_text(SOLUTION)
    generated = tmp_path / "cuda.cu"
    body = SOLUTION.split("'''")[1]
    generated.write_text("#include <torch/types.h>\n#include <cuda.h>\n" + body)
    number = generated.read_text().splitlines().index("    other();")  # 1-based: the line before it
    log = f"[1/2] nvcc ...\n{generated}({number}): error: identifier \"undefined_name\" is undefined\n1 error detected"
    message = compiler_errors(log, solution, tmp_path)
    assert 'relu.py:7: identifier "undefined_name" is undefined' in message
    assert "x[0] = undefined_name;" in message


def test_gcc_and_nvcc_lines_of_the_solution_itself_are_kept(tmp_path):
    solution = tmp_path / "k.cu"
    solution.write_text("int a\nint b;\n")
    log = f"{solution}(2): error #65-D: expected a ';'\n{solution}:1:6: error: expected ';'\nk.cu:1: note: x"
    assert compiler_errors(log, solution).splitlines()[1:] == [
        "k.cu:2: expected a ';'", "    int b;", "k.cu:1: expected ';'", "    int a",
    ]  # fmt: skip


def test_linker_errors_count_and_many_errors_are_counted(tmp_path):
    solution = tmp_path / "k.cu"
    solution.write_text("\n" * 20)
    log = "\n".join(f"k.cu({n}): error: number {n}" for n in range(1, 9)) + "\nk.o: undefined reference to `foo'"
    message = compiler_errors(log, solution)
    assert "number 5" in message and "number 6" not in message and message.endswith("(and 4 more)")


def test_thousands_of_errors_at_one_long_line_are_not_told_with_it(tmp_path):
    """They took 100 GB of a process that has no limit: each held the line, of four bytes a character."""
    (tmp_path / "k.cpp").write_text("//" + "x" * 3_000_000 + "\U0001f600\n")
    log = "\n".join(f"k.cpp:1:1: error: #error {number}" for number in range(7000))
    tracemalloc.start()
    try:
        message = compiler_errors(log, tmp_path / "k.cpp")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 50 << 20 and len(message) < 5000 and message.endswith("(and 6995 more)")


def test_a_log_without_known_errors_shows_its_end(tmp_path):
    assert compiler_errors("a\nb\nKilled\n", tmp_path / "k.cu") == "the build failed:\na\nb\nKilled"


@pytest.fixture
def beside(tmp_path):
    """A solution, a folder of what was generated for it, and a file of somebody else with a line of the solution."""
    (tmp_path / "scratch").mkdir()
    (tmp_path / "secret").write_text("hunter2\n")
    (tmp_path / "k.cpp").write_text("int a;\nhunter2\n")
    return tmp_path / "k.cpp", tmp_path / "scratch", tmp_path / "secret"


@pytest.mark.parametrize("way", ["its path", "a path that leads out", "a link", "a link to its folder"])
def test_a_line_directive_makes_nobody_open_a_file_that_was_not_generated(beside, way):
    solution, scratch, secret = beside
    (scratch / "link").symlink_to(secret)
    (scratch / "folder").symlink_to(secret.parent)
    named = {
        "its path": secret,
        "a path that leads out": f"{scratch}/../secret",
        "a link": scratch / "link",
        "a link to its folder": scratch / "folder" / "secret",
    }[way]
    message = compiler_errors(f"{named}:1:2: error: #error x", solution, scratch)
    assert "k.cpp:2" not in message and "hunter2" not in message and ":1: #error x" in message


def test_a_pipe_in_a_line_directive_keeps_nobody_waiting(beside):
    solution, scratch, _ = beside
    os.mkfifo(scratch / "pipe")
    log = f"{scratch}/pipe:1:2: error: #error x\n/proc/self/fd/0:1:2: error: #error y"
    assert "pipe:1: #error x\n0:1: #error y" in compiler_errors(log, solution, scratch)


def test_a_number_with_thousands_of_digits_is_no_line(beside):
    solution, scratch, _ = beside
    assert "the build failed" in compiler_errors(f"k.cpp:{'9' * 5000}: error: x", solution, scratch)
