"""TritonBench-G: a checkout is a suite of problems, its golden files and answers are solutions."""

import json
import os
import subprocess
import sys
from pathlib import Path

import logs
import pytest
import torch
import tritonbench_checkout as written
from warm_kb import KB

from harness.problem.inputs import build_model, call, draw_inputs
from harness.problem.module import ProblemError, load_problem
from harness.result import Status
from kernelbench import suite
from kernelbench.api import evaluate
from kernelbench.formats import importing
from kernelbench.formats.archive import ArchiveError, ReadOptions
from kernelbench.formats.tritonbench import accuracy, answers, checkout, suites
from kernelbench.run import Run

CPU = torch.device("cpu")
FILL_ASKED = "Write a value into every element of a tensor. Nothing is returned."


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return written.write(tmp_path_factory.mktemp("tritonbench"))


def kb(*arguments, env=None):
    command = [*KB, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **(env or {})})


def judged(root, name, path, workload, device=None):
    return evaluate(load_problem(suite.find(name, root)[0]), path, device=device, workload=workload)


@pytest.mark.slow
def test_difficulty_is_the_level_and_the_number_is_alphabetical(root):
    found = suite.find("all", root)
    assert [(str(file.id), file.name) for file in found] == [("1/1", "fill"), ("2/3", "scale"), ("4/2", "norm")]
    assert found[0].summary() == "Write a value into every element of a tensor"


def test_a_problem_has_a_workload_for_each_shape_and_one_for_its_test(root):
    (scale,) = suite.find("scale", root)
    assert scale.workload_names() == ["0", "1", "2", "3", "test"]
    assert [str(file.id) for file in suite.find("level2,fill", root)] == ["1/1", "2/3"]


def test_the_files_of_a_checkout_have_a_limit_together(root, monkeypatch):
    """1,000 of 4 MiB each, of nothing but zeros, are a small archive and took 4 GB."""
    monkeypatch.setattr(checkout, "_MOST_CHARACTERS", sum(len(e.golden + e.perf) for e in checkout.entries(root)))
    with pytest.raises(ProblemError, match="have more than 0 Mi characters together"):
        checkout.entries(root)  # tests and separators count too


def test_inputs_are_of_one_shape_with_the_types_of_the_perf_file(root):
    workload = load_problem(suite.find("scale", root)[0]).workload("2")
    (x,) = draw_inputs(workload, 7, CPU, torch.float32)
    assert x.shape == (2**10,) and x.dtype == torch.float16
    assert torch.equal(x, draw_inputs(workload, 7, CPU, torch.float32)[0])
    assert workload.flops == 2**10 and workload.declared_bytes == 2**13


def test_what_a_golden_file_writes_into_an_argument_is_its_output(root):
    workload = load_problem(suite.find("fill", root)[0]).workload("0")
    model = build_model(workload.problem.module.Model, workload, 1, CPU, torch.float32)
    result, inputs, gradients = call(model, draw_inputs(workload, 1, CPU, torch.float32))
    assert result is None and gradients == []
    assert inputs[0].eq(inputs[1]).all() and inputs[0].shape == (2**8,)


def test_objects_among_the_inputs_are_each_sides_own_under_one_seed(root):
    problem = load_problem(suite.find("norm", root)[0])
    workload = problem.workload("0")
    doubled = type(sys)("candidate")
    exec(written.NORM.replace("x * self.weight", "2 * x * self.weight"), doubled.__dict__)
    models = [problem.module.Model, problem.module.model_of(doubled)]
    ours, theirs = (
        call(build_model(model, workload, 5, CPU, torch.float32), draw_inputs(workload, 3, CPU, torch.float32))[0]
        for model in models
    )
    assert torch.equal(2 * ours, theirs)


@pytest.mark.slow
@pytest.mark.parametrize("name", written.FILES)
@pytest.mark.parametrize("workload", ["0", "test"])
def test_a_golden_file_is_ok_against_itself(root, tmp_path, name, workload):
    (tmp_path / f"{name}.py").write_text(written.FILES[name][1])
    result = judged(root, name, tmp_path / f"{name}.py", workload, "cpu")
    assert result.status is Status.OK, result.message
    assert result.correctness["allclose"] == {"tolerance": 1e-4, "passes": True, "max_excess": 0.0}
    assert (result.timing is None) == (workload == "test")


@pytest.mark.slow
def test_an_error_above_allclose_and_within_our_tolerance_of_its_type_is_told_apart(root, tmp_path):
    (tmp_path / "scale.py").write_text(written.SCALE.replace("x * factor", "x * factor * 1.003"))
    result = judged(root, "scale", tmp_path / "scale.py", "0", "cpu")
    assert result.status is Status.OK
    assert not result.correctness["allclose"]["passes"] and result.correctness["allclose"]["max_excess"] > 1


@pytest.mark.parametrize(
    "source, status",
    [
        ("import torch\ndef other(): ...\n", Status.LOAD_ERROR),
        (written.FILL.replace("value.expand_as(out)", "2 * value.expand_as(out)"), Status.WRONG_VALUE),
        (written.FILL.replace("out.copy_(", "value.zero_(); out.copy_("), Status.WRONG_VALUE),
        (written.FILL + "\n    raise ValueError('no')\n", Status.RUNTIME_ERROR),
    ],
)
def test_candidates_that_fail(root, tmp_path, source, status):
    (tmp_path / "fill.py").write_text(source)
    assert judged(root, "fill", tmp_path / "fill.py", "0", "cpu").status is status


@pytest.mark.slow
def test_a_folder_of_files_named_as_golden_files_is_evaluated_on_every_shape(root, tmp_path):
    solutions = tmp_path / "solutions"
    solutions.mkdir()
    (solutions / "fill.py").write_text(written.FILL)
    (solutions / "fill_s1.py").write_text("import torch\n")
    out = tmp_path / "run"
    done = kb(
        "eval", "--solutions", solutions, "--problem-dir", root, "--device", "cpu", "--workload", "all", "-o", out
    )
    assert done.returncode == 0, done.stderr
    results = Run.load(out).results
    assert {(r.solution["name"], r.workload["name"], r.status.value) for r in results} == {
        *(("fill.py", name, "ok") for name in ("0", "1", "test")),
        *(("fill_s1.py", name, "load_error") for name in ("0", "1")),
        ("fill_s1.py", "test", "runtime_error"),
    }
    figures = accuracy.figures(results, ["1/1", "2/3"])
    assert (figures["call_accuracy"], figures["execution_accuracy"], figures["ok"]) == (0.5, 0.5, 0.5)
    (row,) = figures["rows"]
    assert row["shapes"] == 2 and row["speedup"] == pytest.approx(
        sum(r.baselines["eager"]["median_ms"] for r in results if r.timing)
        / sum(r.timing["median_ms"] for r in results if r.timing),
        rel=0.2,  # a best sample is measured again
    )
    assert kb("export", out, "--to", "tritonbench", "-o", tmp_path / "figures.json").returncode == 0
    assert json.loads((tmp_path / "figures.json").read_text())["problems"] == 1


@pytest.mark.slow
def test_a_rejected_sample_has_no_speedup_and_takes_no_place():
    """It had those of its measurement, and stood for its problem before honest samples."""
    rejected = logs.judged("1/1", 10.0, name="fast.py", status=Status.REJECTED, seed=1)
    honest = logs.judged("1/1", 1.25, name="honest.py", sample=1, seed=2)
    for one in (rejected, honest):
        one.correctness = {**(one.correctness or {}), "allclose": {"passes": True}}
    alone = accuracy.figures([rejected])
    assert alone["geometric_mean_speedup"] is None and alone["execution_accuracy"] == 1 and alone["ok"] == 0
    both = accuracy.figures([rejected, honest])
    (row,) = both["rows"]
    assert row["solution"] == "honest.py" and both["ok"] == 1 and both["geometric_mean_speedup"] == 1.25


@pytest.mark.slow
def test_files_that_do_not_load_are_listed_with_why(root, tmp_path):
    other = written.write(tmp_path / "other")
    (other / checkout.GOLDEN / "scale.py").write_text("import no_such_module\n")
    done = kb("problems", "load", "--problem-dir", other)
    assert done.returncode == 1
    assert "2/3" in done.stdout and "No module named 'no_such_module'" in done.stdout
    assert "2 of 3 problems load" in done.stdout
    assert kb("problems", "load", "--problem-dir", root).returncode == 0


def test_statistics_that_are_none_are_refused(tmp_path):
    other = written.write(tmp_path / "other")
    (other / checkout.STATISTICS).write_text('[{"file": "scale.py"}]')
    with pytest.raises(ProblemError, match="is not TritonBench's statistics"):
        suite.find("all", other)
    files = [{"file": f"f{number}.py", "difficulty": 1} for number in range(501)]
    (other / checkout.STATISTICS).write_text(json.dumps(files))
    with pytest.raises(ProblemError, match="it names 501 files, and at most 500 are read"):
        suite.find("all", other)
    (other / checkout.STATISTICS).write_text(json.dumps([{"file": "f" * 300 + ".py", "difficulty": 1}]))
    with pytest.raises(suite.SelectorError, match="problems cannot be read in .*File name too long"):
        suite.find("all", other)
    text = [{"file": "scale.py", "difficulty": 1, "simp_instru": "\ud800"}]
    (other / checkout.STATISTICS).write_text(json.dumps(text))
    with pytest.raises(ProblemError, match="is not TritonBench's statistics"):
        suite.find("all", other)


@pytest.mark.parametrize(
    "perf",
    [
        "x = " + "-" * 100_000 + "1", "import os\nos._exit(0)", "import sys\nsys.__stdout__.write('x')", "\0",
        "import os\nos.write(1, b'\\xff')", "import os\nos.write(2, b'\\xff')",
    ],
)  # fmt: skip
def test_perf_files_of_others_are_one_clear_error_or_left_out(tmp_path, perf):
    """A candidate may print what is no text, which was a UnicodeDecodeError."""
    other = written.write(tmp_path / "other")
    path = next((other / checkout.PERF).glob("*_perf.py"))
    path.write_text(perf + "\n" + path.read_text())
    try:
        assert path.name.removesuffix("_perf.py") in {problem.name for problem in suite.find("all", other)}
    except ProblemError as error:
        assert "TritonBench's files cannot be read" in str(error)


def test_shapes_that_could_not_be_found_out_are_looked_for_again(tmp_path):
    """A problem that lacked something on this machine had its test alone for ever, also where that was there later."""
    other = written.write(tmp_path / "other")
    perf = other / checkout.PERF / "scale_perf.py"
    perf.write_text(f"open({str(tmp_path / 'needed')!r})\n" + perf.read_text())
    assert suite.find("scale", other)[0].workload_names() == ["test"]
    (tmp_path / "needed").write_text("")
    assert suite.find("scale", other)[0].workload_names() == ["0", "1", "2", "3", "test"]


def test_a_formula_that_gives_no_finite_number_keeps_the_shapes(tmp_path):
    """The problem had its test alone, and nobody was told."""
    other = written.write(tmp_path / "other")
    perf = other / checkout.PERF / "scale_perf.py"
    text = perf.read_text().replace("return inputs[0].numel() / (", "return float('nan') / (")
    perf.write_text(text.replace("return inputs[0].numel() * 8 / (", "return float('inf') / ("))
    (scale,) = suite.find("scale", other)
    assert scale.workload_names() == ["0", "1", "2", "3", "test"]
    workload = load_problem(scale).workload("2")
    assert workload.flops is None and workload.declared_bytes is None


def test_statistics_are_checked_where_python_leaves_assertions_out(tmp_path):
    """A difficulty of 9 was a level with python -O, which many images set."""
    other = written.write(tmp_path / "other")
    (other / checkout.STATISTICS).write_text('[{"file": "scale.py", "difficulty": 9}]')
    program = f"from pathlib import Path\nfrom kernelbench.formats.tritonbench import checkout\n" \
              f"checkout.names(Path({str(other)!r}))"
    done = subprocess.run([sys.executable, "-O", "-c", program], capture_output=True, text=True)
    assert "is not TritonBench's statistics" in done.stderr and "difficulty not from 1 to 5" in done.stderr


def test_answers_are_mapped_by_their_instruction(root, tmp_path):
    lines = [
        {
            "instruction": "Use Triton. Multiply every element by a number.",
            "predict": f"Here:\n```python\n{written.SCALE}```",
        },
        {"instruction": FILL_ASKED, "predict": written.FILL},
        {"instruction": "Sort it.", "predict": "x"},
        {"instruction": "Use Triton. A kernel: multiply every element by a number.", "predict": "y"},  # the long one
    ]  # fmt: skip
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    made = importing.import_archive(path, tmp_path / "out", options=ReadOptions(problem_dir=root))
    names = ["level2/3_scale_s0.py", "level1/1_fill_s0.py", "level2/3_scale_s1.py"]
    assert [claim.solution for claim in made.claims] == names
    assert made.left_out == [("line 3", "its instruction is none of the checkout's")]
    assert (tmp_path / "out" / "solutions" / "level2" / "3_scale_s0.py").read_text().strip() == written.SCALE.strip()
    with pytest.raises(ArchiveError, match="--problem-dir"):
        importing.import_archive(path, tmp_path / "other")


@pytest.mark.parametrize(
    "asked, imported, left_out",
    [
        (f"Use Triton. {FILL_ASKED} Twice.", ["level2/3_scale_s0.py"], []),
        (f"Use Triton. {FILL_ASKED}", ["level1/1_fill_s0.py"], []),
        (f"{FILL_ASKED} Twice. A layer with a weight for each element.", [],
         [("line 1", "its instruction is that of several: 2/3, 4/2")]),
    ],
)  # fmt: skip
def test_an_answer_is_of_the_longest_instruction_that_it_was_given(tmp_path, asked, imported, left_out):
    """An answer went to the first problem whose instruction is a part of what was asked."""
    other = written.write(tmp_path / "other")
    records = json.loads((other / checkout.STATISTICS).read_text())
    (scale,) = [record for record in records if record["file"] == "scale.py"]
    scale["simp_instru"] = f"{FILL_ASKED} Twice."
    (other / checkout.STATISTICS).write_text(json.dumps(records))
    (tmp_path / "answers.jsonl").write_text(json.dumps({"instruction": asked, "predict": "x = 1"}) + "\n")
    options = ReadOptions(problem_dir=other)
    made = importing.import_archive(tmp_path / "answers.jsonl", tmp_path / "out", options=options)
    assert [claim.solution for claim in made.claims] == imported and made.left_out == left_out


def test_a_checkout_can_be_imported_as_solutions(root, tmp_path):
    made = importing.import_archive(root, tmp_path / "golden")
    assert [claim.solution for claim in made.claims] == [
        "level1/1_fill_s0.py", "level4/2_norm_s0.py", "level2/3_scale_s0.py"
    ]  # fmt: skip


@pytest.mark.parametrize(
    "answer, code",
    [("x = 1", "x = 1"), ("a\n```python\nx = 1\n```\nb", "\nx = 1\n"), ("x = 1<|EOT|>", "x = 1")],
)
def test_code_of_an_answer(answer, code):
    assert answers.code_of(answer) == code


def test_suites_have_the_sizes_of_their_paper():
    names = suites._FIFTY | {f"other_{i}" for i in range(133)} | {"sin_computation"}
    assert [len(suites.members(suite, names)) for suite in suites.SUITES] == [183, 50, 30]


ARCHIVE = os.environ.get("TRITONBENCH")  # a checkout


@pytest.mark.skipif(not ARCHIVE, reason="TRITONBENCH names no checkout of TritonBench")
def test_every_perf_file_of_the_benchmark_loads():
    found = suite.find("all", Path(ARCHIVE))
    assert len(found) == 184 and all(len(file.workload_names()) > 1 for file in found)
    assert [sum(file.id.level == level for file in found) for level in range(1, 6)] == [3, 27, 65, 84, 5]
    assert [len(suite.find(name, Path(ARCHIVE))) for name in suites.SUITES] == [183, 50, 30]


@pytest.mark.gpu
@pytest.mark.skipif(not ARCHIVE, reason="TRITONBENCH names no checkout of TritonBench")
@pytest.mark.parametrize(
    "name, workloads",
    [
        ("matrix_transpose", ["0", "test"]), ("softmax_triton1", ["0", "test"]), ("add_example", ["0", "test"]),
        ("fast_layernorm", ["0", "test"]),
        ("cache_transform_triton", ["test"]),  # which records numbers
        ("rmsnorm_implementation", ["test"]),  # copies on the CPU
    ],
)  # fmt: skip
def test_golden_files_are_ok_against_themselves_on_a_gpu(name, workloads, tmp_path):
    importing.import_archive(Path(ARCHIVE), tmp_path / "golden")
    (path,) = (tmp_path / "golden").rglob(f"*_{name}_s0.py")
    for workload in workloads:
        result = judged(Path(ARCHIVE), name, path, workload)
        assert result.status is Status.OK, result.message
