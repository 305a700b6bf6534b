"""Compiler errors point at the solution's own lines."""

from harness.build.diagnostics import compiler_errors

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


def test_errors_in_a_generated_file_are_placed_in_the_solution_by_their_text_and_neighbours(tmp_path):
    solution = tmp_path / "relu.py"
    solution.write_text(SOLUTION)
    generated = tmp_path / "cuda.cu"
    body = SOLUTION.split("'''")[1]
    generated.write_text("#include <torch/types.h>\n#include <cuda.h>\n" + body)
    number = generated.read_text().splitlines().index("    other();")  # 1-based: the line before it
    log = f"[1/2] nvcc ...\n{generated}({number}): error: identifier \"undefined_name\" is undefined\n1 error detected"
    message = compiler_errors(log, solution)
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


def test_a_log_without_known_errors_shows_its_end(tmp_path):
    assert compiler_errors("a\nb\nKilled\n", tmp_path / "k.cu") == "the build failed:\na\nb\nKilled"
