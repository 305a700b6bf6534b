"""Tasks for Harbor: two boxes with nothing of the judge in the agent's, and a test.sh that rewards what is right."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from warm_kb import KB

from kernelbench import suite
from kernelbench.formats import harbor
from kernelbench.integrations import harbor as harbor_judge

WRONG = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, *inputs): return torch.zeros(3)\n"
BROKEN = ("wrong_shape", "load_error")  # 2/76 has arguments of its constructor
PROBLEMS = "1/19,2/76"


def export(folder, selector=PROBLEMS, **plan):
    plan = {"judge": "kernelbench", "device": "cpu", "track": "open"} | plan
    return harbor.export(selector, folder, harbor.Plan(**plan))


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    return export(tmp_path_factory.mktemp("tasks"))


def run(script, box):
    """Run a script of a task with the folders of ``box`` in place of the container's."""
    env = os.environ | {"KB_SOLUTION": str(box / "solution"), "KB_VERIFIER": str(box / "verifier")}
    env["PATH"] = f"{Path(sys.executable).parent}:{env['PATH']}"
    done = subprocess.run(["bash", str(script)], env=env, cwd=box, capture_output=True, text=True, timeout=300)
    reward = box / "verifier" / "reward.json"
    return done, json.loads(reward.read_text()) if reward.exists() else None


@pytest.mark.slow
@pytest.mark.parametrize("index", range(2))
def test_the_reference_solution_passes_and_a_broken_one_fails(tasks, tmp_path, index):
    run(tasks[index] / "solution" / "solve.sh", tmp_path)
    done, reward = run(tasks[index] / "tests" / "test.sh", tmp_path)
    assert done.returncode == 0 and reward["correct"] == 1 and reward["reward"] >= 0.3, done.stdout + done.stderr
    (tmp_path / "solution" / "kernel.py").write_text(WRONG)
    done, reward = run(tasks[index] / "tests" / "test.sh", tmp_path)
    assert done.returncode == 1 and reward["correct"] == 0 and reward["reward"] == 0
    assert json.loads((tmp_path / "verifier" / "grade.json").read_text())["grade"]["label"] in BROKEN


def test_a_module_in_the_agents_folder_is_not_run_by_the_judge(tasks, tmp_path):
    (tmp_path / "solution").mkdir()
    (tmp_path / "tempfile.py").write_text("open('taken', 'w').close()")
    done, _ = run(tasks[0] / "tests" / "test.sh", tmp_path)
    assert done.returncode == 1 and not (tmp_path / "taken").exists()


@pytest.mark.parametrize("names", [[], ["kernel.py", "kernel.cpp"], ["other.py"], ["kernel.cu"]])
def test_without_one_solution_the_reward_is_nothing_and_says_why(tasks, tmp_path, names):
    (tmp_path / "solution").mkdir()
    for name in names:
        (tmp_path / "solution" / name).write_text(WRONG)
    done, reward = run(tasks[0] / "tests" / "test.sh", tmp_path)
    assert done.returncode == 1 and reward["reward"] == 0
    assert "expected one file kernel.py or kernel.cpp, found" in done.stdout


def test_a_folder_that_cannot_be_looked_into_has_no_solution():
    """An agent took the rights of its folder, and was not scored where its solution was wrong."""
    grade, record = harbor_judge.judge("1/19", Path("x" * 5_000), "cpu")
    assert (grade.label, grade.value, record) == (harbor_judge.NO_SOLUTION, 0.0, None)


@pytest.mark.slow
@pytest.mark.parametrize("first", ["# kb: device=cuda", "import triton.language as tl", "# kb: problem=1/20"])
def test_what_an_agent_writes_cannot_leave_its_solution_unscored(tasks, tmp_path, first):
    """A wrong solution that asked for another device was not evaluated, so that it counted in no average."""
    (tmp_path / "solution").mkdir()
    (tmp_path / "solution" / "kernel.py").write_text(f"{first}\n{WRONG}")
    done, reward = run(tasks[0] / "tests" / "test.sh", tmp_path)
    assert done.returncode == 1 and reward["reward"] == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_where_the_machine_is_at_fault_there_is_no_reward(tmp_path):
    (task,) = export(tmp_path / "tasks", "1/19", device="cuda", track="open")
    (tmp_path / "solution").mkdir()
    (tmp_path / "solution" / "kernel.py").write_text(WRONG)
    test = task / "tests" / "test.sh"
    test.write_text(test.read_text().replace("--device cuda", "--device cuda:99"))
    done, reward = run(test, tmp_path)
    assert done.returncode == 3 and reward is None and "not evaluated" in done.stderr


@pytest.mark.slow
def test_a_build_ends_long_before_harbor_ends_the_verifier(tasks, tmp_path):
    """Builds had 900 s each, so that an agent could have the verifier ended, and be unscored."""
    limit = f"--build-timeout {harbor._BUILD_S}"
    script = (tasks[0] / "tests" / "test.sh").read_text()
    assert limit in script and 12 * harbor._BUILD_S + 170 * harbor._STEP_S < harbor._VERIFIER_S
    (tmp_path / "test.sh").write_text(script.replace(limit, "--build-timeout 0.05"))
    (tmp_path / "solution").mkdir()
    (tmp_path / "solution" / "kernel.cpp").write_text("#include <regex>\n")
    done, reward = run(tmp_path / "test.sh", tmp_path)
    assert done.returncode == 1 and reward["reward"] == 0 and "the build took longer" in done.stdout


def test_the_agents_part_holds_no_judge_no_solution_and_nothing_that_helps_to_cheat(tasks):
    for task in tasks:
        seen = [task / "instruction.md", *(task / "environment").rglob("*")]
        text = "\n".join(path.read_text() for path in seen if path.is_file())
        (file,) = suite.find(json.loads((task / "task.toml").read_text().partition("problem = ")[2].split("\n")[0]))
        assert sorted(path.name for path in (task / "environment").iterdir()) == ["Dockerfile", "reference.py"]
        assert not any(word in text for word in ("EXPLOITS", "TOLERANCE", "DOMAIN", "kernelbench", "harness", "seed"))
        assert "class Model(nn.Module)" in text and file.name.replace("_", "-") in task.name


def test_the_configuration_is_what_harbor_reads(tasks):
    config = pytest.importorskip("harbor.models.task.config", reason="pip install harbor, which needs Python 3.12")
    read = config.TaskConfig.model_validate_toml((tasks[0] / "task.toml").read_text())
    assert read.verifier.environment_mode.value == "separate" and read.artifacts == [harbor.FOLDER]


def test_a_task_for_a_gpu_asks_for_one_and_has_no_solution_where_kernels_are_required(tmp_path):
    (task,) = export(tmp_path, "1/19", device="cuda", track="kernels", gpu_types=("H100",))
    toml = (task / "task.toml").read_text()
    assert toml.count("gpus = 1") == 2 and 'gpu_types = ["H100"]' in toml and 'environment_mode = "separate"' in toml
    assert not (task / "solution").exists() and "kernel.cu" in (task / "instruction.md").read_text()


def test_a_wheel_travels_into_the_judges_box_only(tmp_path):
    wheel = tmp_path / "kernelbench-0.1.0-py3-none-any.whl"
    wheel.write_bytes(b"wheel")
    (task,) = export(tmp_path / "tasks", "1/19", judge=str(wheel))
    assert (task / "tests" / wheel.name).read_bytes() == b"wheel"
    assert wheel.name in (task / "tests" / "Dockerfile").read_text()
    assert not list((task / "environment").glob("*.whl"))


def test_what_is_there_is_not_overwritten(tmp_path):
    export(tmp_path, "1/19")
    with pytest.raises(harbor.HarborError, match="exists: remove it"):
        export(tmp_path, "1/19")
    with pytest.raises(harbor.HarborError, match="no such wheel"):
        export(tmp_path, "1/20", judge="dist/none.whl")


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--to", "harbor", "-o", "t"], "needs --problems and --judge"),
        (["--to", "harbor", "--problems", "9/9", "--judge", "k", "-o", "t"], "no problem matches"),
        (["runs/mine", "--to", "harbor", "--problems", "1/1", "--judge", "k", "-o", "t"], "leave the runs out"),
        (["--to", "csv", "-o", "t.csv"], "needs a run"),
    ],
)
def test_the_command_says_what_is_missing(tmp_path, arguments, message):
    command = [*KB, "export", *arguments]
    root = Path(__file__).parents[3]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(root)}
    )
    assert done.returncode == 2 and message in done.stderr
