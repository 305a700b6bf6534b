"""A real Ray cluster of several nodes on this machine: the same records, no shared files, a node that is lost."""

import dataclasses
import json
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import victims
from warm_kb import REAL_KB

from harness.problem.module import ProblemId
from harness.process.procfs import available_memory_bytes
from harness.solution.discover import read_solution
from kernelbench import suite
from kernelbench.evaluation.chosen import Selection
from kernelbench.evaluation.directory import evaluate_directory
from kernelbench.evaluation.executor import EnvironmentUnfit, Options
from kernelbench.evaluator.client import Conditions, EvaluatorProcess, evaluate_all
from kernelbench.rl import job_of

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
RELU_CPP = (
    '#include <cstddef>\nextern "C" void solution(const float* x, float* y, size_t batch_size, size_t dim) {\n'
    "    for (size_t i = 0; i < batch_size * dim; ++i) y[i] = x[i] > 0 ? x[i] : 0;\n}\n"
)
WRONG = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x): return x\n"


def test_without_ray_the_message_says_what_to_install(tmp_path):
    """In an interpreter that finds no Ray."""
    (tmp_path / "1_19.py").write_text(WRONG)
    code = "import sys; sys.modules['ray'] = None; from kernelbench.cli import main; main()"
    command = [sys.executable, "-c", code, "eval", "--solutions", str(tmp_path), "--executor", "ray"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 3 and "pip install 'kernelbench[ray]'" in done.stderr, done.stderr


@pytest.fixture(scope="module")
def cluster():
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'kernelbench[ray]'")
    from ray.cluster_utils import Cluster

    object_store = {"object_store_memory": 80 << 20}
    if available_memory_bytes() < 4 << 30:
        pytest.skip("a Ray cluster of three nodes needs 4 GiB of memory")
    # a node is given up after three seconds of silence, not after half a minute
    quick = {"health_check_initial_delay_ms": 500, "health_check_period_ms": 500, "health_check_failure_threshold": 6}
    head = {"num_cpus": 0, "_system_config": quick, **object_store}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    for _ in range(2):
        cluster.add_node(num_cpus=1, **object_store)
    yield cluster
    cluster.shutdown()


def evaluate(cluster, solutions, out):
    options = Options(device="cpu", timeout_s=30, executor="ray", address=cluster.address)
    return evaluate_directory(Selection(solutions), options, out=out)


def has_victim(node):
    return victims.below(node.all_processes["raylet"][0].process.pid)


def test_builds_and_evaluations_on_nodes_that_share_no_files_give_the_same_records(cluster, tmp_path):
    folder = tmp_path / "solutions"
    (folder / "level1").mkdir(parents=True)
    (folder / "include").mkdir()
    (folder / "include" / "clamp.h").write_text("inline float clamp(float x) { return x > 0 ? x : 0; }\n")
    (folder / "level1" / "19_relu.cpp").write_text(
        '#include <cstddef>\n#include "../include/clamp.h"\n'
        'extern "C" void solution(const float* x, float* y, size_t batch_size, size_t dim) {\n'
        "    for (size_t i = 0; i < batch_size * dim; ++i) y[i] = clamp(x[i]);\n}\n"
    )
    (folder / "level1" / "19_s1.cpp").write_text("not C++")
    for sample in range(2, 6):
        (folder / "level1" / f"19_s{sample}.py").write_text(f"# {sample}\n{victims.SOURCE}")
    used, done = set(), threading.Event()

    def watch():
        while not done.wait(0.1):
            used.update(node for node in cluster.worker_nodes if has_victim(node))

    watcher = threading.Thread(target=watch)
    watcher.start()
    outcome = evaluate(cluster, folder, tmp_path / "run")
    done.set()
    watcher.join()
    assert not outcome.skipped
    statuses = [result.status.value for result in outcome.run.latest()]
    assert statuses == ["ok", "build_error"] + ["wrong_value"] * 4
    assert used == set(cluster.worker_nodes)

    local = tmp_path / "local"
    command = [*REAL_KB, "eval", "--solutions", str(folder), "--device", "cpu"]
    subprocess.run([*command, "--out", str(local)], check=True, capture_output=True, timeout=120)
    records = [json.loads(line) for line in (local / "results.jsonl").read_text().splitlines()]
    ours = {result.solution["name"]: result.to_json() for result in outcome.run.results}
    assert len(ours) == len(records) == 6
    for record in records:
        other = ours[record["solution"]["name"]]
        assert {key: type(value) for key, value in other.items()} == {key: type(v) for key, v in record.items()}
        assert all(other[key] == record[key] for key in ("problem", "workload", "solution", "status", "precision"))
        assert other["device"]["name"] == record["device"]["name"]


def test_what_runs_on_a_node_that_is_killed_is_evaluated_on_another(cluster, tmp_path):
    folder = tmp_path / "solutions"
    (folder / "level1").mkdir(parents=True)
    for sample in range(5):
        (folder / "level1" / f"19_s{sample}.py").write_text(f"# {sample}\n{victims.SOURCE}")

    def kill_the_node():
        deadline = time.monotonic() + 60
        while not (hit := list(filter(has_victim, cluster.worker_nodes))) and time.monotonic() < deadline:
            time.sleep(0.05)
        cluster.remove_node(hit[0], allow_graceful=False)

    killer = threading.Thread(target=kill_the_node)
    killer.start()
    outcome = evaluate(cluster, folder, tmp_path / "run")
    killer.join()
    assert not outcome.skipped
    log = [json.loads(line) for line in (tmp_path / "run" / "results.jsonl").read_text().splitlines()]
    assert sorted(record["solution"]["sample"] for record in log) == list(range(5))
    assert {record["status"] for record in log} == {"wrong_value"}


def test_a_gpu_by_its_number_is_rays_to_choose(cluster, tmp_path):
    (tmp_path / "1_19.py").write_text(WRONG)
    options = Options(device="cuda:1", executor="ray", address=cluster.address)
    with pytest.raises(EnvironmentUnfit, match="takes --device cpu or cuda"):
        evaluate_directory(Selection(tmp_path), options, out=tmp_path / "run")


def test_a_cluster_that_is_not_there_is_one_clear_error_at_once(tmp_path):
    pytest.importorskip("ray")
    (tmp_path / "1_19.py").write_text(WRONG)
    command = [*REAL_KB, "eval", "--solutions", tmp_path, "--executor", "ray"]
    done = subprocess.run(
        [*command, "--address", "127.0.0.1:1"], capture_output=True, text=True, timeout=60, cwd=tmp_path
    )
    assert done.returncode == 3 and "does not connect to 127.0.0.1:1" in done.stderr, done.stderr


def test_a_solution_that_cannot_travel_fails_alone(cluster, tmp_path):
    """Sparse files took all of the driver's memory."""
    folder = tmp_path / "solutions"
    folder.mkdir()
    with open(folder / "data.bin", "wb") as file:
        file.truncate(80 << 20)
    (folder / "1_19_s1.py").write_text("NAMED = 'data.bin'\n" + WRONG)
    (folder / "1_19.py").write_text(WRONG)
    outcome = evaluate(cluster, folder, tmp_path / "run")
    assert not outcome.skipped
    found = {result.solution["sample"]: result for result in outcome.run.latest()}
    assert [found[sample].status.value for sample in range(2)] == ["wrong_value", "build_error"]
    assert "too large to send to a node: at most 64 MiB" in found[1].message


def test_a_task_that_fails_on_a_node_leaves_the_other_solutions_alone(cluster, tmp_path):
    """A full disk of one node ended the run; here a file has a name that cannot be written there."""
    from kernelbench.evaluation.ray_cluster import driver

    folder = tmp_path / "solutions"
    folder.mkdir()
    for sample in range(2):
        (folder / f"1_19_s{sample}.py").write_text(f"# {sample}\n{WRONG}")
    pack = driver.pack

    def damaged(solution):
        parcel = pack(solution)
        if solution.sample == 1:
            return dataclasses.replace(parcel, files={"../" * 40 + "proc/nothing": b""})
        return parcel

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(driver, "pack", damaged)
        outcome = evaluate(cluster, folder, tmp_path / "run")
    assert [result.solution["sample"] for result in outcome.run.latest()] == [0]
    (skipped,) = outcome.skipped
    assert skipped.solution.sample == 1 and "a node could not evaluate it" in skipped.reason


def test_who_takes_long_is_waited_for_as_long_as_the_cluster_is_there(cluster, tmp_path, monkeypatch):
    """After four hours without news, which a candidate can have them wait for, all others were given up."""
    from kernelbench.evaluation.ray_cluster import driver

    for name, seconds in (("_SILENT_S", 5.0), ("_RECRUIT_S", 0.5)):
        monkeypatch.setattr(driver, name, seconds)
    folder = tmp_path / "solutions"
    folder.mkdir()
    (folder / "1_19.py").write_text("import time\n\ntime.sleep(16)\n" + WRONG)
    outcome = evaluate(cluster, folder, tmp_path / "run")
    assert not outcome.skipped and [result.status.value for result in outcome.run.latest()] == ["wrong_value"]


def test_a_cluster_that_gives_no_sign_is_given_up_once(cluster, tmp_path, monkeypatch):
    """A later answer of it was a KeyError, which took a service its whole cluster."""
    from kernelbench.evaluation.ray_cluster import driver

    monkeypatch.setattr(driver, "_give_a_sign", lambda: time.sleep(60))
    for name, seconds in (("_SILENT_S", 2.0), ("_RECRUIT_S", 0.5)):
        monkeypatch.setattr(driver, name, seconds)
    solution = tmp_path / "1_19.py"
    solution.write_text("import time\n\ntime.sleep(12)\n" + WRONG)
    (file,), one = suite.find("1/19"), read_solution(solution, problem=ProblemId(1, 19))
    other = dataclasses.replace(one, sample=1)
    made = driver.Cluster(Options(device="cpu", timeout_s=30, executor="ray", address=cluster.address), builds=True)
    try:
        evaluation = driver.Evaluation(made)
        evaluation.add([(file, one)], "small")
        given_up = [item for _ in range(20) if evaluation.left for item in evaluation.step(0.5)]
        assert [item.solution for item in given_up] == [one] and "gave no sign for 2 s" in given_up[0].reason
        monkeypatch.setattr(driver, "_SILENT_S", 600.0)
        evaluation.add([(file, other)], "small")
        later = [item for _ in range(120) if evaluation.left for item in evaluation.step(0.5)]
        assert [item.solution for item in later] == [other]
    finally:
        made.close()


def test_solutions_that_come_one_by_one_are_evaluated_as_on_one_host(cluster):
    """What the service sends: several callers at once, through the evaluator's process."""
    conditions = Conditions("cpu", timeout_s=30, executor="ray", address=cluster.address)
    process = EvaluatorProcess()
    try:
        jobs = [job_of("1/19", WRONG, "py", conditions), job_of("1/19", None, "py", conditions)]
        jobs += [job_of("1/19", "not C++", "cpp", conditions), job_of("1/19", WRONG, "cu", conditions)]
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda job: evaluate_all([job], conditions, process)[0], jobs))
        assert [one.status.value for one in found[:3]] == ["wrong_value", "build_error", "build_error"]
        assert "must be text" in found[1].message and "needs a GPU" in str(found[3])
        # judges own the cores of the nodes by now: a build that waited for one of them held up everybody
        after = evaluate_all([job_of("1/19", RELU_CPP, "cpp", conditions)], conditions, process)
        assert after[0].status.value == "ok"
        answers = {}
        process.ask([], conditions, answers)
        assert answers[None]["bench"]["devices"] >= 1
    finally:
        process.close()
