"""`kb try`: one JSON object, fixed exit statuses, and a new verdict whenever the file is saved."""

import json
import signal
import subprocess
import sys
import time

import jsonschema
import pytest
import warm_kb

from kernelbench.attempt import report, warm_client

GOOD = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x): return x.clamp(min=0)\n"
KB = [*warm_kb.KB, "try"]


@pytest.fixture(scope="module", autouse=True)
def runtime(tmp_path_factory):
    """A private folder for the warm server, which all tests here share."""
    folder = tmp_path_factory.mktemp("run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(folder))
        yield
        warm_client.stop()


def kb_try(*arguments):
    """Exit status and the object on standard output."""
    done = subprocess.run([*KB, *map(str, arguments), "--json"], capture_output=True, text=True, timeout=300)
    attempt = json.loads(done.stdout)
    jsonschema.validate(attempt, report.schema())
    assert attempt["exit_status"] == done.returncode and done.stdout.count("\n") == 1
    return done.returncode, attempt


@pytest.mark.slow
def test_an_interruption_is_no_traceback_of_any_process(tmp_path):
    """The judge, which had just begun, told somebody who had ended what it was."""
    path = tmp_path / "1_19.py"
    path.write_text("class ModelNew: pass\n")
    for seconds in (0.8, 1.2, 1.6, 2.0):
        command = [*warm_kb.REAL_KB, "try", path, "--device", "cpu", "--no-server"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            time.sleep(seconds)
            process.send_signal(signal.SIGTERM)
            said, _ = process.communicate(timeout=60)
        assert process.returncode in (1, 130) and "Traceback" not in said, said


@pytest.mark.slow
def test_each_exit_status(tmp_path):
    right, wrong, other = tmp_path / "1_19.py", tmp_path / "1_19_s1.py", tmp_path / "own.py"
    right.write_text(GOOD)
    wrong.write_text(GOOD.replace("clamp", "clump"))
    other.write_text(GOOD)
    status, attempt = kb_try(right, "--device", "cpu")
    assert status == 0 and attempt["correct"] and attempt["file"] == str(right) and attempt["time_ms"] > 0
    status, attempt = kb_try(wrong, "--device", "cpu")
    assert status == 1 and attempt["status"] == "runtime_error" and attempt["error"]["line"] == 3
    assert kb_try(other, "--device", "cpu")[0] == 2
    assert kb_try(other, "--device", "cpu", "--problem", "1/19")[0] == 0
    assert kb_try(other, "--problem", "9/99")[0] == 2
    assert kb_try(tmp_path / "gone.py", "--problem", "1/19")[0] == 2
    status, attempt = kb_try(right, "--device", "cuda:99")
    assert status == 3 and not attempt["correct"] and attempt["status"] == "not_evaluated"


def test_without_a_server_it_is_the_same(tmp_path):
    path = tmp_path / "1_19.py"
    path.write_text("class ModelNew: nonsense(")
    status, attempt = kb_try(path, "--device", "cpu", "--no-server")
    assert status == 1 and attempt["error"]["line"] == 1 and attempt["hint"]


@pytest.mark.slow
def test_watch_judges_again_on_save(tmp_path):
    path = tmp_path / "1_19.py"
    path.write_text("class ModelNew: nonsense(")
    command = [*KB, str(path), "--device", "cpu", "--json", "--watch"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert json.loads(process.stdout.readline())["status"] == "build_error"
            path.with_suffix(".new").write_text(GOOD.replace("clamp(min=0)", "neg()"))
            path.with_suffix(".new").replace(path)
            assert json.loads(process.stdout.readline())["status"] == "wrong_value"
            process.send_signal(2)
            assert process.wait(60) == 130
        finally:
            process.kill()


@pytest.mark.slow
def test_watch_goes_on_after_a_save_that_is_no_solution(tmp_path):
    """It ended there, also where it had looked in the middle of a save."""
    path, new = tmp_path / "1_19.py", tmp_path / "1_19.new"
    path.write_text("class ModelNew: nonsense(")
    command = [*KB, str(path), "--device", "cpu", "--json", "--watch"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert json.loads(process.stdout.readline())["exit_status"] == 1
            for source, status in (("# kb: sample=x\n", 2), ("class ModelNew: other nonsense(", 1)):
                new.write_text(source)
                new.replace(path)
                assert json.loads(process.stdout.readline())["exit_status"] == status
        finally:
            process.kill()


def test_the_schema_is_published():
    done = subprocess.run([*KB, "--schema"], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == report.schema()


def test_the_command_that_calls_a_warm_server_starts_at_once():
    """It imports neither torch nor numpy."""
    code = "import sys, importlib; importlib.import_module('kernelbench.cli.evaluate.try')\n"
    code += "assert not {'torch', 'numpy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
