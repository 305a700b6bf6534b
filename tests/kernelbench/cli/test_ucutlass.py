"""`kb ucutlass`: exit statuses, JSON in and out, and that what is refused starts no compiler."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import warm_kb
from click.testing import CliRunner
from logs import no_log

from harness.compile.toolchain import nvcc
from kernelbench.cli import main

sys.path.insert(0, str(Path(__file__).parent.parent / "ucutlass"))
from ucutlass_programs import FIGURE_1, GEMM90, TEMPLATE  # noqa: E402

KB = [*warm_kb.KB, "ucutlass"]
COMPILERS = ("nvcc", "cicc", "ptxas", "gcc", "g++", "cc", "c++", "ninja")


def kb(*arguments, source=None, **keywords):
    return subprocess.run([*KB, *map(str, arguments)], input=source, capture_output=True, text=True, timeout=120,
                          **keywords)  # fmt: skip


def invoke(*arguments, source=None):
    return CliRunner().invoke(main, ["ucutlass", *map(str, arguments)], input=source)


@pytest.fixture
def figure_1(tmp_path):
    path = tmp_path / "figure_1.dsl"
    path.write_text(FIGURE_1)
    return path


@pytest.fixture
def called(tmp_path, monkeypatch):
    """The note that every compiler on the path writes when it is called."""
    folder, note = tmp_path / "bin", tmp_path / "called"
    folder.mkdir()
    for name in COMPILERS:
        (folder / name).write_text(f"#!/bin/sh\necho {name} >> {note}\nexit 1\n")
        (folder / name).chmod(0o755)
    for name, value in {"PATH": f"{folder}:{os.environ['PATH']}", "CUDA_HOME": str(tmp_path), "CC": "gcc"}.items():
        monkeypatch.setenv(name, value)
    subprocess.run(["nvcc"], check=False)
    assert note.read_text() == "nvcc\n"
    note.unlink()
    return note


def test_a_valid_program_is_ok_by_its_hash(figure_1):
    done = kb("check", figure_1)
    assert done.returncode == 0 and done.stdout.startswith("ok: ucutlass_"), done.stderr


def test_a_refused_program_says_every_rule_and_exits_with_1():
    done = kb("check", "-", source=TEMPLATE.replace("90a", "90"))
    assert done.returncode == 1 and done.stdout == "" and "2 finding(s)" in done.stderr
    assert "3:54: [arch-sm90a]" in done.stderr and "[cooperative-stages]" in done.stderr
    assert "fix: add .with_stages(2)" in done.stderr


@pytest.mark.slow
def test_json_goes_in_and_out():
    given = json.dumps({"source": FIGURE_1, "problem": "2/76"})
    done = kb("explain", "-", "--json", "--precision", "fp16", source=given)
    data = json.loads(done.stdout)
    assert done.returncode == 0 and data["ok"] and data["hash"] in kb("check", "-", source=FIGURE_1).stdout
    assert data["binding"]["arguments"][0] == {"operand": "A", "value": "x"}
    assert data["resources"][0]["stages_that_fit"] == 6
    refused = json.loads(kb("check", "-", "--json", source=TEMPLATE).stdout)
    assert not refused["ok"] and refused["findings"][0]["rule"] == "cooperative-stages"
    assert refused["findings"][0]["line"] == 5 and refused["findings"][0]["fix"] == "add .with_stages(2)"


def test_explain_shows_defaults_operands_and_resources(figure_1):
    shown = kb("explain", figure_1).stdout
    assert "# default" in shown and "[M, K]" in shown and "2 stages of 32 KB" in shown


def test_a_problem_whose_tensors_do_not_fit_is_refused(figure_1):
    done = kb("check", figure_1, "--problem", "2/76")
    assert done.returncode == 1 and "[bind-dtype]" in done.stderr and "transpose(input, NLC, NLC" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "source", "message"),
    [
        (["check", "missing.dsl"], None, "cannot read missing.dsl"),
        (["check", "-"], '{"problem": "1/1"}', 'without a text "source"'),
        (["check", "-"], '{"source": 3}', 'without a text "source"'),
        (["check", "-"], '{"source": ', "is no JSON"),
        (["compile", "-", "--header-only"], '{"source": "# \\ud800"}', "is no JSON"),
        (["check", "-"], '{"source": "gemm()", "problem": 3}', '"problem" and "workload" are texts'),
        (["check", "-", "--problem", "9/99"], GEMM90, "9/99"),
        (["check", "-", "--problem", "1/1", "--workload", "huge"], GEMM90, "huge"),
        (["check", "-"], " " * (1 << 20) + "x", "more than"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_status_2(arguments, source, message):
    done = invoke(*arguments, source=source)
    assert done.exit_code == 2 and message in done.output and isinstance(done.exception, SystemExit), done.output


def test_tune_takes_a_file_of_any_name_and_asks_for_its_problem(tmp_path):
    (tmp_path / "program.txt").write_text(GEMM90)
    done = invoke("tune", tmp_path / "program.txt", "--list")
    assert done.exit_code == 2 and "name the problem to measure on" in done.output


@pytest.mark.parametrize("command", ["check", "explain"])
@pytest.mark.parametrize("kind", ["a pipe", "a device without end"])
def test_what_is_no_plain_file_is_wrong_usage(tmp_path, command, kind):
    no_log(tmp_path / "a.dsl", kind)
    done = kb(command, tmp_path / "a.dsl")
    assert done.returncode == 2 and "a.dsl: it is not a plain file" in done.stderr


def test_what_is_no_text_is_wrong_usage(tmp_path):
    (tmp_path / "a.dsl").write_bytes(b"\xff\xfe")
    done = invoke("check", tmp_path / "a.dsl")
    assert done.exit_code == 2 and "no text in UTF-8" in done.output


@pytest.mark.parametrize("source", [TEMPLATE, "gem()", GEMM90.replace("90a", "100"), f"{GEMM90} >> custom('y')", ""])
def test_a_refused_program_starts_no_compiler_and_writes_nothing(source, tmp_path, called):
    done = invoke("compile", "-", "-o", tmp_path / "out", source=source)
    assert done.exit_code == 1 and not called.exists() and not (tmp_path / "out").exists(), done.output


def test_compile_writes_a_header_that_begins_with_the_program(tmp_path, figure_1):
    done = invoke("compile", figure_1, "-o", tmp_path / "out", "--header-only", "--json")
    data = json.loads(done.output)
    assert done.exit_code == 0 and data["library"] is None
    header = Path(data["header"]).read_text()
    assert header.index("gelu() >> clip(min=0, max=6)") < header.index("namespace ucutlass_" + data["hash"])


def test_a_header_takes_the_place_of_a_link(tmp_path, figure_1):
    """Its name is known to whoever wrote the program."""
    name = "ucutlass_" + json.loads(invoke("check", figure_1, "--json").output)["hash"] + ".h"
    (tmp_path / "mine").write_text("")
    (tmp_path / name).symlink_to(tmp_path / "mine")
    assert invoke("compile", figure_1, "-o", tmp_path, "--header-only").exit_code == 0
    assert (tmp_path / "mine").read_text() == "" and "namespace" in (tmp_path / name).read_text()


@pytest.mark.slow
@pytest.mark.skipif(nvcc() is None, reason="needs nvcc")
def test_compile_makes_a_library_that_has_the_programs_functions(tmp_path):
    source = "depthwise_conv1d(kernel_w=3).with_dtype(input=fp16, acc=fp32, output=fp16).with_arch(sm_80) >> relu()"
    done = invoke("compile", "-", "-o", tmp_path, "--json", source=source)
    data = json.loads(done.output)
    assert done.exit_code == 0, done.output
    assert f"ucutlass_{data['hash']}_run".encode() in Path(data["library"]).read_bytes()


def test_compile_without_a_compiler_exits_with_3(tmp_path, figure_1, monkeypatch):
    compiler = importlib.import_module("kernelbench.ucutlass.codegen.build.compiler")
    monkeypatch.setattr(compiler, "nvcc", lambda: None)
    done = invoke("compile", figure_1, "-o", tmp_path)
    assert done.exit_code == 3 and "no nvcc" in done.output


def test_check_imports_neither_torch_nor_code_generation(figure_1):
    code = (
        "import sys; sys.argv = ['kb', 'ucutlass', 'check', sys.argv[1]]\nfrom kernelbench.cli import main\n"
        "try: main()\nfinally: print([m for m in sys.modules if m == 'torch' or 'codegen' in m], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(figure_1)], capture_output=True, text=True)
    assert done.stderr.strip() == "[]" and done.stdout.startswith("ok")


@pytest.mark.parametrize("arguments", [["--help"], ["ucutlass", "--help"], ["ucutlass", "check", "--help"]])
def test_help_needs_no_lark(arguments):
    code = f"import sys; sys.modules['lark'] = None; sys.argv = ['kb', *{arguments!r}]\n" \
           "from kernelbench.cli import main; main()"  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0 and "ucutlass" in done.stdout, done.stderr


@pytest.mark.parametrize("json_", [[], ["--json"]])
def test_without_lark_the_message_says_what_to_install(figure_1, json_):
    code = "import sys; sys.modules['lark'] = None; sys.argv = ['kb', 'ucutlass', 'check', *sys.argv[1:]]\n" \
           "from kernelbench.cli import main; main()"  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code, str(figure_1), *json_], capture_output=True, text=True)
    assert done.returncode == 3 and "pip install 'kernelbench[cutlass]'" in done.stdout + done.stderr
