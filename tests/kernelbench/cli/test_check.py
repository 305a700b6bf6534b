"""`kb check` as CI runs it: real evaluations, exit statuses, files, the action's script."""

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from xml.etree import ElementTree

import logs
import pytest
from click.testing import CliRunner
from warm_kb import KB

from harness.solution.discover import PREBUILT_SUFFIX, SUFFIXES
from kernelbench.cli.evaluate.check import command
from kernelbench.evaluation.directory import Outcome
from kernelbench.metrics import settled
from kernelbench.run import Run

ROOT = Path(__file__).parents[3]
RELU = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x): return x.clamp(min=0)\n"
NOT_GITHUB = {k: v for k, v in os.environ.items() if not k.startswith("GITHUB_")}
needs_nvcc = pytest.mark.skipif(not shutil.which("nvcc"), reason="needs nvcc")


def check(folder, *arguments, **environment):
    command = [*KB, "check", "--solutions", "kernels", "--device", "cpu", "--timeout", "60", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, cwd=folder, timeout=300, env=NOT_GITHUB | environment
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "kernels" / "level1").mkdir(parents=True)
    (tmp_path / "kernels" / "level1" / "19_relu.py").write_text(RELU)
    return tmp_path


@pytest.mark.slow
def test_the_gate_holds_then_fails_on_a_broken_kernel_and_names_it(folder):
    first = check(folder, "--out", "main")
    assert first.returncode == 0, first.stdout + first.stderr
    assert first.stdout.startswith("The gate holds. 1 of 1 evaluated.") and "::" not in first.stdout
    kernel = folder / "kernels" / "level1" / "19_relu.py"
    kernel.write_text(RELU.replace("min=0", "min=1"))
    done = check(
        folder, "--out", "pull", "--against", "main", "--junit", "kb.xml",
        GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=str(folder / "summary.md"),
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    assert "::error file=kernels/level1/19_relu.py" in done.stdout and "wrong_value, and must be ok" in done.stdout
    assert "The gate fails: 1 of 1" in (folder / "summary.md").read_text()
    assert ElementTree.parse(folder / "kb.xml").getroot().attrib["failures"] == "1"


@pytest.mark.slow
def test_a_kernel_of_a_problem_that_there_is_not_does_not_slip_out_of_the_gate(folder):
    (folder / "kernels" / "level1" / "999_relu.py").write_text(RELU)
    done = check(folder)
    assert done.returncode == 1 and "there is no problem 1/999" in done.stdout
    assert "level1/999_relu.py: there is no problem" in done.stdout
    assert check(folder, "--allow-unmapped").returncode == 0


@pytest.mark.slow
def test_a_kernel_whose_problem_and_sample_another_file_claims_does_not_slip_out_of_the_gate(folder):
    (folder / "kernels" / "level1" / "20.py").write_text(f"# kb: problem=1/19 sample=0\n{RELU}")
    done = check(folder)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "claims 1/19 sample 0, which is that of level1/19_relu.py (--allow-unmapped accepts it)" in done.stdout
    (folder / "kernels" / "level1" / "19.py").write_text(RELU)
    assert check(folder).returncode == 2  # nothing is left


@pytest.mark.slow
def test_the_summary_holds_any_text_whatever_the_locale(folder):
    """A message in Chinese ended the gate with a status that no gate has, where the locale was none of UTF-8."""
    (folder / "kernels" / "level1" / "20.py").write_text("raise ValueError('\u4e2d\u6587 \u20ac')", encoding="utf-8")
    locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = [sys.executable, "-m", "kernelbench", "check", "--solutions", "kernels", "--device", "cpu"]
    done = subprocess.run(
        [*command, "--summary", "s.md", "--junit", "kb.xml"], capture_output=True, cwd=folder, timeout=300,
        env=NOT_GITHUB | locale | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "\u4e2d\u6587 \u20ac" in (folder / "s.md").read_text(encoding="utf-8")
    assert "\u4e2d\u6587 \u20ac" in (folder / "kb.xml").read_text(encoding="utf-8")


@pytest.mark.parametrize("option", ["--junit", "--summary"])
@pytest.mark.parametrize("path", ["/proc/kb.xml", "nowhere/kb.xml"])
def test_a_file_that_cannot_be_written_is_told_before_the_work(folder, option, path):
    done = check(folder, option, path)
    assert done.returncode == 2 and f"cannot write {path}" in done.stderr and not (folder / "runs").exists()


class Measured:
    """In the place of the evaluations: results of a log, one more of what is measured again at each."""

    def __init__(self, run, *further):
        self.run, self.further, self.calls = run, list(further), []

    def __call__(self, solutions, out=None, resume=False, again=(), **parameters):
        self.calls.append(set(again))
        if again:
            assert resume and out == self.run.path
            self.run.append(self.further.pop(0))
        found = frozenset((r.problem, r.solution["name"]) for r in self.run.latest())
        return Outcome(self.run, {"type": "cpu"}, 1, [], root=solutions, found=found)


def status_of(monkeypatch, measured, *arguments):
    monkeypatch.setattr("kernelbench.cli.evaluate.check.evaluate", measured)
    done = CliRunner().invoke(command, ["--solutions", "kernels", *arguments], env={"GITHUB_STEP_SUMMARY": None})
    return done.exit_code, done.stdout


def test_references_against_themselves_pass_but_for_the_unstable_ones(monkeypatch):
    """From the records of an H100 to the exit status."""
    references = Run.load(ROOT / "results" / "h100" / "references")
    references.append = lambda result: None  # what is measured again stays as it is
    measured = Measured(references, None, None)
    exit_code, text = status_of(monkeypatch, measured, "--min-speedup", "1")
    assert exit_code == 3 and text.startswith("The gate is undecided: 9 of 250 could not be checked")
    assert "Does not hold" not in text and [len(again) for again in measured.calls] == [0, 9, 9]
    references.results = [r for r in references.results if settled.verdict(r) != "unstable"]
    exit_code, text = status_of(monkeypatch, Measured(references), "--min-speedup", "1")
    assert exit_code == 0 and text.startswith("The gate holds. 241 of 241 evaluated.")


def unstable(result):
    result.baselines["eager"] |= {"verdict": "unstable", "interval": [0.5, 1.5]}
    return result


def test_what_is_unstable_is_measured_again_until_it_is_not(monkeypatch, tmp_path):
    noisy = [unstable(logs.result("1/1", 1.0, seed=seed)) for seed in (1, 1, 1)]
    stable = logs.result("1/1", 0.5, seed=1)
    measured = Measured(logs.run(tmp_path / "a", noisy[0]), noisy[1], stable)
    assert status_of(monkeypatch, measured, "--prove-speedup", "1.5")[0] == 0
    assert measured.calls == [set(), {("1/1", "level1/1_s0.py", "small")}, {("1/1", "level1/1_s0.py", "small")}]
    measured = Measured(logs.run(tmp_path / "b", noisy[0]), *noisy[1:], stable)
    exit_code, text = status_of(monkeypatch, measured, "--min-speedup", "0.1", "--json")
    assert exit_code == 3 and len(measured.calls) == 3  # measurements in all
    data = json.loads(text)
    assert data["verdict"] == "undecided" and data["checks"][0]["result"]["settled_speedup"] is None
    measured = Measured(logs.run(tmp_path / "c", noisy[0]))
    assert status_of(monkeypatch, measured)[0] == 0 and len(measured.calls) == 1  # no limit on speed


def test_a_slower_kernel_and_one_that_is_gone_fail_against_an_earlier_run(monkeypatch, tmp_path):
    relu = {"name": "level1/19_relu.py"}
    main = logs.run(tmp_path / "main", logs.result("1/19", 1.0, **relu), logs.result("1/20", 1.0, name="gone.py"))
    pull = logs.run(tmp_path / "pull", logs.result("1/19", 3.0, seed=1, **relu))
    options = ["--max-regression", "50%", "--against", str(main.path), "--annotations"]
    exit_code, text = status_of(monkeypatch, Measured(pull), *options)
    assert exit_code == 1 and text.startswith("The gate fails: 2 of 2")
    assert "::error file=kernels/level1/19_relu.py" in text and "speedup fell from" in text
    assert "1/20 gone.py: it is in" in text
    exit_code, text = status_of(monkeypatch, Measured(main), *options, "--allow-removed")
    assert exit_code == 0


def test_a_baseline_that_could_not_be_timed_is_status_3_and_says_why(monkeypatch, tmp_path):
    found = logs.result("1/1", 0.5)
    found.speedup, found.baselines = None, {"compile": {"error": "no C++ compiler"}}
    exit_code, text = status_of(monkeypatch, Measured(logs.run(tmp_path / "r", found)), "--min-speedup", "1")
    assert exit_code == 3 and "no baseline could be timed: compile: no C++ compiler" in text


def tenth_slower(log, kernel):
    """The same log, with one kernel's times a tenth longer."""
    records = [json.loads(line) for line in log.read_text().splitlines()]
    for record in records:
        if record["solution"]["name"] == kernel:
            record["timing"]["samples_ms"] = [1.1 * ms for ms in record["timing"]["samples_ms"]]
            record["timing"]["median_ms"] *= 1.1
            record["speedup"] /= 1.1
    return "".join(json.dumps(record) + "\n" for record in records)


def test_a_tenth_of_a_real_log_is_a_regression(folder, monkeypatch):
    """The H100's log, and the same with one kernel a tenth slower: only that one is named."""
    from kernelbench.gate import ci, thresholds

    main, pull = folder / "main", folder / "pull"
    shutil.copytree(ROOT / "results" / "h100" / "examples", main)
    shutil.copytree(main, pull)
    limits = thresholds.Limits(require=frozenset(thresholds.Status), max_regression=0.05)
    honest = [thresholds.check_result(r, limits, Run.load(main)) for r in Run.load(pull).latest()]
    assert len(honest) == 26 and not any(found.broken for found in honest)
    (pull / "results.jsonl").write_text(tenth_slower(main / "results.jsonl", "cuda/relu.cu"))
    changed = [thresholds.check_result(r, limits, Run.load(main)) for r in Run.load(pull).latest()]
    assert [found.name for found in changed if found.broken] == ["cuda/relu.cu"]
    monkeypatch.chdir(folder)
    errors = [line for line in ci.annotations(changed, Path("kernels")).splitlines() if line.startswith("::error")]
    assert len(errors) == 1 and "file=kernels/cuda/relu.cu" in errors[0] and "-9.1%" in errors[0]


@pytest.mark.slow
@needs_nvcc
def test_without_a_gpu_cuda_is_built_and_named_as_not_checked(folder):
    (folder / "kernels" / "1_1.cu").write_text('extern "C" void solution() {}')
    (folder / "kernels" / "1_2.cu").write_text('extern "C" void solution() { nonsense }')
    (folder / "kernels" / "1_3.py").write_text("import triton\nclass ModelNew: pass\n")
    os.remove(folder / "kernels" / "level1" / "19_relu.py")
    done = check(folder, "--out", "run")
    assert done.returncode == 1 and "1/2 1_2.cu: build_error" in done.stdout, done.stdout + done.stderr
    assert "1_1.cu: cuda solution, needs a GPU; built only" in done.stdout
    assert "1_3.py: triton solution, needs a GPU; only its syntax was checked" in done.stdout
    os.remove(folder / "kernels" / "1_2.cu")
    assert check(folder, "--out", "again").returncode == 0


@pytest.mark.slow
@needs_nvcc
def test_a_program_of_ucutlass_is_built_for_the_precision_that_was_given(folder):
    """It was translated for FP32, and a right program for FP16 broke the gate."""
    pytest.importorskip("cutlass_library")
    shutil.rmtree(folder / "kernels" / "level1")
    program = "gemm().with_dtype(input=fp16, acc=fp32, output=fp16).with_arch(sm_90a)"
    program += ".with_layout(A=RowMajor, B=ColumnMajor, C=RowMajor).with_threadblockshape(m=128, n=128, k=64)"
    program += " >> bias() >> relu() bind(A=x, B=gemm.weight, bias=bias)"
    (folder / "kernels" / "2_76.dsl").write_text(f"# kb: problem=2/76\n{program}\n")
    done = check(folder, "--out", "run", "--precision", "fp16")
    assert done.returncode == 0 and "2_76.dsl: cuda solution, needs a GPU; built only" in done.stdout, done.stdout
    done = check(folder, "--out", "again", "--precision", "fp32")
    assert done.returncode == 1 and "A is fp16, x is torch.float32" in done.stdout, done.stdout


@pytest.mark.slow
@needs_nvcc
def test_builds_without_a_gpu_have_the_limits_that_were_given(folder):
    """They took 130 s and 11.5 GB under limits of 6 s and 1 GB."""
    shutil.rmtree(folder / "kernels" / "level1")
    doubled = "T<N - 1, 2 * M>::v + T<N - 1, 2 * M + 1>::v"
    doubles = f"template <int N, int M> struct T {{ static constexpr int v = {doubled}; }};"
    ends = "template <int M> struct T<0, M> { static constexpr int v = M; };"
    body = f'{doubles}\n{ends}\nint grows = T<20, 0>::v;\nextern "C" void solution() {{}}\n'
    (folder / "kernels" / "1_1.cu").write_text(body)
    done = check(folder, "--out", "run", "--build-timeout", "2")
    assert done.returncode == 1 and "1_1.cu: " in done.stdout and "2 s" in done.stdout, done.stdout + done.stderr
    done = check(folder, "--out", "again", "--memory", "0.2")
    assert done.returncode == 1 and "the limit is 0.2 GB" in done.stdout, done.stdout + done.stderr


@pytest.mark.slow
def test_without_a_gpu_and_a_compiler_nothing_is_checked_and_the_status_says_so(folder):
    shutil.rmtree(folder / "kernels" / "level1")
    (folder / "kernels" / "1_1.cu").write_text('extern "C" void solution() {}')
    done = check(folder, "--out", "run", PATH=str(folder), CUDA_HOME=str(folder), CXX="")
    assert done.returncode == 3 and "not built: no " in done.stdout, done.stdout


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--max-regression", "5%"], "--max-regression needs --against"),
        (["--against", "nowhere", "--max-regression", "5%"], "nowhere is no run directory"),
        (["--against", "nowhere", "--max-regression", "5"], "'5' is no percentage from 0% to 100%: write 5%"),
        (["--against", "nowhere", "--max-regression", "0.05"], "write 5%"),
        (["--against", "nowhere", "--max-regression", "105%"], "from 0% to 100%"),
        (["--require", "fine"], "fine"),
        (["--min-speedup", "-1"], "-1"),
        (["--arch", "hopper"], "no compute capability"),
        (["--resume"], "--resume needs --out"),
        (["--solutions", "elsewhere"], "no such directory"),
        (["--solutions", "kernels/level1/19_relu.py"], "a gate is over a directory"),
        (["--device", "gpu"], "'gpu' is no device; there are: cpu, cuda, cuda:INDEX"),
    ],
)
def test_wrong_input_is_status_2_before_anything_runs(folder, arguments, message):
    done = check(folder, *arguments)
    assert done.returncode == 2 and message in done.stderr and "Traceback" not in done.stderr
    assert not (folder / "runs").exists()


@pytest.mark.slow
def test_the_action_passes_its_inputs_on(folder):
    text = (ROOT / "action.yml").read_text()
    script = textwrap.dedent(text.rpartition("run: |\n")[2])
    optional = ("PROBLEMS", "MIN_SPEEDUP", "PROVE_SPEEDUP", "MAX_REGRESSION", "AGAINST", "ALLOW")
    inputs = {name: "" for name in optional} | {
        "SOLUTIONS": "kernels", "REQUIRE": "ok", "ARCH": "9.0", "OUT": "kb-run", "JUNIT": "kb.xml",
    }  # fmt: skip
    assert all(f"KB_{name}: ${{{{ inputs." in text for name in inputs)
    environment = NOT_GITHUB | {f"KB_{name}": value for name, value in inputs.items()}
    environment["PATH"] = os.path.dirname(sys.executable) + os.pathsep + environment["PATH"]

    def act(**more):
        return subprocess.run(
            ["bash", "-eo", "pipefail", "-c", script],
            cwd=folder, env=environment | more, capture_output=True, text=True,
        )  # fmt: skip

    (folder / "elsewhere").mkdir()
    (folder / "link").symlink_to("elsewhere")
    places = (dict(KB_OUT="link"), dict(KB_JUNIT="link"), dict(KB_OUT="link/run"), dict(KB_JUNIT="./link/kb.xml"))
    for place in (*places, dict(KB_SOLUTIONS="link"), dict(KB_AGAINST="link/run")):
        led_away = act(**place)  # a pull request brings links, too
        assert led_away.returncode == 2 and "a link in the workspace leads from" in led_away.stderr
    assert not list((folder / "elsewhere").iterdir())
    assert act(KB_AGAINST="nowhere", KB_MAX_REGRESSION="5%").returncode == 2
    for name in ("MIN_SPEEDUP", "PROVE_SPEEDUP", "MAX_REGRESSION"):
        wrong = act(**{f"KB_{name}": "fast"})
        assert wrong.returncode == 2 and "'fast'" in wrong.stderr
    failed = act(KB_REQUIRE="timeout", KB_PROBLEMS="1/19")
    assert failed.returncode == 1 and "and must be timeout" in failed.stdout, failed.stderr
    assert act(KB_ALLOW="nonsense").returncode == 2
    (folder / "kernels" / "notes.py").touch()
    accepted = act(KB_ALLOW="unmapped missing", KB_PROBLEMS="1/19-20", KB_OUT="another")
    assert accepted.returncode == 0 and "notes.py: maps to no problem" in accepted.stdout, accepted.stderr
    assert (folder / "kb.xml").exists() and (folder / "kb-run" / "results.jsonl").exists()


def test_the_action_is_not_installed_from_within_the_workspace():
    """A file pip.py of a pull request ran in the place of pip."""
    (step,) = [step for step in (ROOT / "action.yml").read_text().split("\n    - ") if "pip install" in step]
    assert "working-directory: ${{ github.action_path }}\n" in step and "run: python -m pip install ." in step


def test_the_hook_runs_for_each_kind_of_solution_and_for_headers():
    (files,) = re.findall(r"^  files: (.*)$", (ROOT / ".pre-commit-hooks.yaml").read_text(), re.MULTILINE)
    assert all(re.search(files, f"a/kernel{suffix}") for suffix in (*SUFFIXES, PREBUILT_SUFFIX, ".h", ".cuh", ".hpp"))
    assert not re.search(files, "README.md")


def test_the_hook_runs_a_command_that_there_is():
    hook = (ROOT / ".pre-commit-hooks.yaml").read_text()
    (entry,) = [line.split(":", 1)[1].split() for line in hook.splitlines() if line.strip().startswith("entry:")]
    assert entry[0] == "kb"
    help_ = subprocess.run([*KB, *entry[1:], "--help"], capture_output=True, text=True)
    assert help_.returncode == 0 and "--solutions" in help_.stdout and "pass_filenames: false" in hook
