"""`kb check` as CI runs it: real evaluations, exit statuses, files, the action's script."""

import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from xml.etree import ElementTree

import pytest

KB = [sys.executable, "-m", "kernelbench"]
ROOT = Path(__file__).parents[2]
RELU = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x): return x.clamp(min=0)\n"
SLOW_RELU = RELU.replace("return x", "\n        for _ in range(50): x.clamp(min=0)\n        return x")
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


def test_the_gate_holds_then_fails_on_a_slower_kernel_and_names_it(folder):
    first = check(folder, "--out", "main")
    assert first.returncode == 0, first.stdout + first.stderr
    assert first.stdout.startswith("The gate holds. 1 of 1 evaluated.") and "::" not in first.stdout
    kernel = folder / "kernels" / "level1" / "19_relu.py"
    kernel.write_text(SLOW_RELU)
    done = check(
        folder, "--out", "pull", "--against", "main", "--max-regression", "50%", "--junit", "kb.xml",
        GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=str(folder / "summary.md"),
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    assert "::error file=kernels/level1/19_relu.py" in done.stdout and "speedup fell from" in done.stdout
    assert "The gate fails: 1 of 1" in (folder / "summary.md").read_text()
    assert ElementTree.parse(folder / "kb.xml").getroot().attrib["failures"] == "1"


def test_a_kernel_of_a_problem_that_there_is_not_does_not_slip_out_of_the_gate(folder):
    (folder / "kernels" / "level1" / "999_relu.py").write_text(RELU)
    done = check(folder)
    assert done.returncode == 3 and "there is no problem 1/999" in done.stdout


def test_a_file_that_cannot_be_written_hides_no_verdict(folder):
    (folder / "kernels" / "level1" / "19_relu.py").write_text("nonsense(")
    done = check(folder, "--junit", "/proc/kb.xml", "--summary", "summary.md")
    assert done.returncode == 1 and "/proc/" in done.stderr
    assert "The gate fails: 1 of 1" in (folder / "summary.md").read_text()


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
    from kernelbench import ci, gate
    from kernelbench.run import Run

    main, pull = folder / "main", folder / "pull"
    shutil.copytree(ROOT / "results" / "h100" / "examples", main)
    shutil.copytree(main, pull)
    limits = gate.Limits(require=frozenset(gate.Status), max_regression=0.05)
    honest = [gate.check_result(r, limits, Run.load(main)) for r in Run.load(pull).latest()]
    assert len(honest) == 26 and not any(found.broken for found in honest)
    (pull / "results.jsonl").write_text(tenth_slower(main / "results.jsonl", "cuda/relu.cu"))
    changed = [gate.check_result(r, limits, Run.load(main)) for r in Run.load(pull).latest()]
    assert [found.name for found in changed if found.broken] == ["cuda/relu.cu"]
    monkeypatch.chdir(folder)
    errors = [line for line in ci.annotations(changed, Path("kernels")).splitlines() if line.startswith("::error")]
    assert len(errors) == 1 and "file=kernels/cuda/relu.cu" in errors[0] and "-9.1%" in errors[0]


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


def test_without_a_gpu_and_a_compiler_nothing_is_checked_and_the_status_says_so(folder):
    shutil.rmtree(folder / "kernels" / "level1")
    (folder / "kernels" / "1_1.cu").write_text('extern "C" void solution() {}')
    done = check(folder, "--out", "run", PATH=str(folder), CUDA_HOME=str(folder), CXX="")
    assert done.returncode == 3 and "not built: no " in done.stdout, done.stdout


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--max-regression", "5%"], "need each other"),
        (["--against", "nowhere", "--max-regression", "5%"], "nowhere is no run directory"),
        (["--against", "nowhere", "--max-regression", "5"], "no percentage"),
        (["--require", "fine"], "fine"),
        (["--min-speedup", "-1"], "-1"),
        (["--arch", "hopper"], "no compute capability"),
        (["--resume"], "--resume needs --out"),
        (["--solutions", "elsewhere"], "no such directory"),
    ],
)
def test_wrong_input_is_status_2_before_anything_runs(folder, arguments, message):
    done = check(folder, *arguments)
    assert done.returncode == 2 and message in done.stderr and "Traceback" not in done.stderr
    assert not (folder / "runs").exists()


def test_the_action_passes_its_inputs_on(folder):
    text = (ROOT / "action.yml").read_text()
    script = textwrap.dedent(text.rpartition("run: |\n")[2])
    inputs = {name: "" for name in ("PROBLEMS", "MIN_SPEEDUP", "MAX_REGRESSION", "AGAINST")} | {
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

    assert act(KB_AGAINST="nowhere", KB_MAX_REGRESSION="5%").returncode == 2
    failed = act(KB_MIN_SPEEDUP="1000", KB_PROBLEMS="1/19")
    assert failed.returncode == 1 and "is under 1000x" in failed.stdout, failed.stderr
    assert (folder / "kb.xml").exists() and (folder / "kb-run" / "results.jsonl").exists()


def test_the_hook_runs_a_command_that_there_is():
    hook = (ROOT / ".pre-commit-hooks.yaml").read_text()
    (entry,) = [line.split(":", 1)[1].split() for line in hook.splitlines() if line.strip().startswith("entry:")]
    assert entry[0] == "kb"
    help_ = subprocess.run([*KB, *entry[1:], "--help"], capture_output=True, text=True)
    assert help_.returncode == 0 and "--solutions" in help_.stdout and "pass_filenames: false" in hook
