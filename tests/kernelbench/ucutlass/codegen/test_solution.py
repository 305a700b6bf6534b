""".dsl solutions: what a program becomes for a problem, and how a build gets at the compiler of µCUTLASS."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.compile.translated import PROGRAM_WRONG
from harness.process.procfs import is_ending
from kernelbench import suite
from kernelbench.ucutlass import ProgramError
from kernelbench.ucutlass.codegen.build.compiler import HEADERS_VARIABLE
from kernelbench.ucutlass.codegen.build.translate import translated, translators

ROOT = Path(__file__).resolve().parents[4]
SOLUTIONS = sorted((ROOT / "solutions" / "ucutlass").glob("*.dsl"))
LINEAR = """gemm().with_dtype(input=fp32, acc=fp32, output=fp32)
.with_layout(A=RowMajor, B=ColumnMajor, C=RowMajor).with_arch(sm_90a) >> bias() >> relu()
bind({})"""


def problem_of(path):
    level, number = path.stem.split("_")[:2]
    return suite.find(f"{level}/{number}")[0].path


def solved(problem, binding, precision="fp32"):
    return translated(LINEAR.format(binding), suite.find(problem)[0].path, precision)


@pytest.mark.parametrize("path", SOLUTIONS, ids=lambda path: path.stem)
def test_a_solution_becomes_the_problems_function(path):
    text = translated(path.read_text(), problem_of(path), "fp32")
    assert text.count('extern "C" void solution(') == 1
    assert "C interface" in text and "#define UCUTLASS_NO_C_INTERFACE" in text  # of several, none clashes


def test_there_are_solutions_of_at_least_six_problems_of_both_levels():
    levels = [path.stem.split("_")[0] for path in SOLUTIONS]
    assert min(levels.count("1"), levels.count("2")) >= 6


def test_operands_are_bound_to_tensors_and_extents_to_the_workloads_sizes():
    text = solved("2/76", "A=x, B=gemm.weight, bias=bias")
    body = text[text.index('extern "C" void solution(') :]
    assert body.startswith('extern "C" void solution(void const* x, void const* bias, void const* gemm_weight, void* ')
    sizes = "batch_size == 1024 && in_features == 8192 && out_features == 8192"
    full = re.search(rf"if \({sizes}\) \{{(.*?)\}}", body, re.S)[1]
    for line in ("a.p_A = static_cast<decltype(a.p_A)>(x);", "a.p_B = static_cast<decltype(a.p_B)>(gemm_weight);",
                 "a.n_M = 1024;", "a.n_N = 8192;", "a.n_K = 8192;"):  # fmt: skip
        assert line in full
    assert "in_features == 256" in body  # the other workload has a branch of its own


def test_a_workload_that_the_program_does_not_fit_ends_with_the_reason():
    text = solved("2/12", "A=x, B=gemm.weight, bias=gemm.bias")
    assert re.search(r'in_features == 3001 && out_features == 5003\) \{\s+end\("[KN]=\d+ is no multiple of', text)


PROBLEM = """import torch
WORKLOADS = {"full": dict(batch=4, rows=16, columns=8)}
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.gemm = torch.nn.Linear(8, 8)
    def forward(self, x):
        return torch.relu(self.gemm(x))
def get_inputs(batch, rows, columns):
    return [torch.randn(SHAPE)]
def get_init_inputs(batch, rows, columns):
    return []
"""


def extents_of_other_sizes(tmp_path, shape):
    """Return the extents that a solution has at sizes of no workload, by name; None where it has none."""
    (tmp_path / "problem.py").write_text(PROBLEM.replace("SHAPE", shape))
    text = translated(LINEAR.format("A=x, B=gemm.weight, bias=gemm.bias"), tmp_path / "problem.py", "fp32")
    found = re.search(r"else if \(columns == 8\) \{(.*?)\}", text, re.S)
    return found and dict(re.findall(r"a\.n_(\w) = (.*);", found[1]))


def test_extents_at_other_sizes_of_the_inputs_are_products_of_these(tmp_path):
    """Each program crashed on held-out workloads, which were never among those of the problem."""
    assert extents_of_other_sizes(tmp_path, "batch, rows, 8") == {
        "M": "int64_t(batch) * int64_t(rows)", "N": "8", "K": "8",
    }  # fmt: skip
    assert extents_of_other_sizes(tmp_path, "batch * batch * 3 * rows, 8")["M"] == (
        "int64_t(batch) * int64_t(batch) * int64_t(rows) * 3"
    )


@pytest.mark.parametrize("shape", [
    "batch + rows, 8", "batch * rows + 1, 8", "batch * 2 * (rows // 16), 8", "rows // 2, 8",
])  # fmt: skip
def test_other_sizes_of_which_an_extent_is_no_product_end_with_the_reason(tmp_path, shape):
    assert extents_of_other_sizes(tmp_path, shape) is None
    text = translated(LINEAR.format("A=x, B=gemm.weight, bias=gemm.bias"), tmp_path / "problem.py", "fp32")
    assert 'else end("the extents of the program do not follow from these sizes");' in text


def test_at_other_sizes_alignments_are_looked_at_when_it_is_called():
    """Not all of CUTLASS's kernels do that themselves, and misaligned reads lose the device."""
    text = solved("2/76", "A=x, B=gemm.weight, bias=bias")
    branch = re.search(r"else if \(in_features == 8192 && out_features == 8192\) \{(.*?)\n  \}", text, re.S)[1]
    assert "a.n_M = int64_t(batch_size);" in branch and "a.n_K = 8192;" in branch
    assert 'if (a.n_K % 4) end("K is no multiple of A=4");' in branch


def test_a_program_that_does_not_fit_the_problem_says_what_to_change():
    with pytest.raises(ProgramError, match="the problem has no such input"):
        solved("2/76", "A=y")
    with pytest.raises(ProgramError, match="bind-dtype"):
        solved("2/76", "A=x", precision="fp16")


@pytest.mark.slow
def test_the_command_prints_findings_and_tells_them_by_its_status(tmp_path):
    program, out = tmp_path / "2_76.dsl", tmp_path / "out.cu"
    command = [*translators()["dsl"].command, str(program), str(out), "--problem", str(suite.find("2/76")[0].path)]
    program.write_text("gemm().with_arch(sm_90)\n")
    done = subprocess.run(command, capture_output=True, text=True, cwd="/")
    assert done.returncode == PROGRAM_WRONG and "[arch-sm90a]" in done.stdout and not out.exists()
    program.write_text(LINEAR.format("A=x, B=gemm.weight, bias=bias"))
    done = subprocess.run(command, capture_output=True, text=True, cwd="/")
    assert done.returncode == 0, done.stderr
    assert 'extern "C" void solution(' in out.read_text()


def command_for(problem, source):
    """Return the command that translates a program for a problem with this source."""
    problem.write_text(source)
    program = problem.with_name("2_76.dsl")
    program.write_text(LINEAR.format("A=x, B=gemm.weight, bias=bias"))
    return [*translators()["dsl"].command, str(program), str(problem.with_name("out.cu")), "--problem", str(problem)]


@pytest.mark.slow
def test_a_translation_ends_with_the_process_that_asked_for_it(tmp_path):
    """One went on for up to two minutes where `kb` was killed."""
    started = tmp_path / "started"
    problem = f"import os, time\nopen({str(started)!r}, 'w').write(str(os.getpid()))\ntime.sleep(60)\n"
    command = command_for(tmp_path / "problem.py", problem)
    with subprocess.Popen([sys.executable, "-c", f"import subprocess; subprocess.run({command!r})"]) as caller:
        end = time.monotonic() + 60
        while not (started.exists() and started.read_text()) and time.monotonic() < end:
            time.sleep(0.05)
        translator = int(started.read_text())
        assert not is_ending(translator)
        caller.kill()
    end = time.monotonic() + 10
    while not is_ending(translator) and time.monotonic() < end:
        time.sleep(0.05)
    assert is_ending(translator)


@pytest.mark.slow
def test_a_translation_takes_so_much_memory_and_no_more(tmp_path):
    command = command_for(tmp_path / "problem.py", "memory = bytearray(5 << 30)\n")
    done = subprocess.run(command, capture_output=True, text=True, cwd="/")
    assert done.returncode and "MemoryError" in done.stderr


def test_missing_headers_are_the_machines_fault(monkeypatch, tmp_path):
    monkeypatch.setenv(HEADERS_VARIABLE, str(tmp_path))
    assert "set CUTLASS_PATH to a checkout" in translators()["dsl"].missing


def test_a_missing_parser_is_the_machines_fault(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(ROOT)])
    monkeypatch.delitem(sys.modules, "lark", raising=False)
    assert "pip install 'kernelbench[cutlass]'" in translators()["dsl"].missing


def test_the_command_finds_packages_where_this_process_does(monkeypatch, tmp_path):
    """Also without PYTHONPATH, which builds do not have."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "lark").mkdir()
    (tmp_path / "lark" / "__init__.py").write_text("raise SystemExit('this one')")
    command = [*translators()["dsl"].command, "a.dsl", "out.cu", "--problem", "p.py"]
    (tmp_path / "a.dsl").write_text("gemm()")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert "this one" in done.stderr


def test_naming_the_translator_imports_neither_torch_nor_lark():
    code = (
        "import sys; from kernelbench.ucutlass.codegen.build.translate import translators; translators(); "
        "print([m for m in ('torch', 'lark') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.strip() == "[]"
