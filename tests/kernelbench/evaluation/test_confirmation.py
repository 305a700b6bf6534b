"""The best of several samples is measured once more, by new processes, and that measurement counts."""

import json
import os
import subprocess
from contextlib import nullcontext

import pytest
from logs import judged, result, run
from warm_kb import KB

from harness.result import Status
from harness.solution.discover import read_solution
from harness.solution.private_copy import PrivateCopies
from kernelbench.evaluation.confirmation import confirm_best
from kernelbench.evaluation.executor import Evaluated
from kernelbench.metrics import settled, winners
from kernelbench.metrics.scores import scores
from kernelbench.run import Run

PROBLEM = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        for _ in range(24):
            x = torch.sort(x).values
        return x
def get_inputs(): return [torch.rand(1 << 14)]
def get_init_inputs(): return []
"""
SOLUTION = """
import torch
class ModelNew(torch.nn.Module):
    def forward(self, x):
        for _ in range({sorts}):
            x = torch.sort(x).values
        return x
"""


@pytest.fixture
def samples(tmp_path):
    """Two solutions that are much faster than the reference; the problem's folder and theirs."""
    problems, solutions = tmp_path / "problems", tmp_path / "solutions"
    for path, source in ((problems / "level1" / "1_sort.py", PROBLEM),
                         (solutions / "1_1_s0.py", SOLUTION.format(sorts=8)),
                         (solutions / "1_1_s1.py", SOLUTION.format(sorts=2))):  # fmt: skip
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    return problems, solutions


def kb_eval(tmp_path, samples, *more):
    problems, solutions = samples
    command = [*KB, "eval", "--solutions", str(solutions), "--problem-dir",
               str(problems), "--device", "cpu", "--out", str(tmp_path / "run"), "--json", *more]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ}, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


@pytest.mark.slow
def test_the_best_of_two_is_measured_again_and_only_that_one(tmp_path, samples):
    data, said = kb_eval(tmp_path, samples)
    results = Run.load(tmp_path / "run").results
    again = [one for one in results if one.confirms]
    if all(settled.verdict(one) == "unstable" for one in results):
        pytest.skip("this machine is too busy to time anything")
    assert "measuring the best of several samples once more: 1 solution(s)" in said
    first = {one.solution["name"]: one for one in results if not one.confirms}
    assert again and all(one.confirms["speedup"] == first[one.solution["name"]].speedup for one in again)
    assert data["confirmed_best"]["solutions"] == len(again) and len(data["results"]) == 2
    _, said = kb_eval(tmp_path, samples, "--resume")
    assert "once more" not in said and len(Run.load(tmp_path / "run").results) == len(results)


class Repeats:
    """An executor whose measurements are given, by the solution's name."""

    def __init__(self, speedups):
        self.speedups, self.asked = speedups, []

    def evaluate(self, pairs, status, workload):
        for _, solution in pairs:
            self.asked.append(solution.name)
            yield Evaluated(solution, judged("1/1", self.speedups[solution.name], name=solution.name))


def test_measurements_go_on_until_the_best_of_all_has_been_repeated(tmp_path, samples):
    names = ["1_1_s0.py", "1_1_s1.py", "1_1_s2.py"]
    measured = [judged("1/1", s, name=n, sample=i) for i, (n, s) in enumerate(zip(names, (2.0, 1.5, 1.2)))]
    made = run(tmp_path / "r", *measured)
    (samples[1] / "1_1_s2.py").write_text(SOLUTION.format(sorts=3))
    solutions = {name: read_solution(samples[1] / name, samples[1]) for name in names}
    executor = Repeats({"1_1_s0.py": 1.3, "1_1_s1.py": 1.4})
    skipped = confirm_best(
        made, lambda found: (None, solutions[found.solution["name"]]), PrivateCopies(tmp_path / "copies"),
        lambda builds: nullcontext(executor), lambda item: made.append(item.result), lambda count: None,
        lambda what, text: None,
    )  # fmt: skip
    assert executor.asked == ["1_1_s0.py", "1_1_s1.py"] and not skipped
    assert scores(made.solutions(), ["1/1"]).settled.tolist() == [1.4]
    assert winners.bias(made.latest())["bias"] == pytest.approx((2.0 / 1.3 * 1.5 / 1.4) ** 0.5)


def test_what_is_measured_again_on_another_text_of_its_problem_is_told_as_not_measured(tmp_path, samples):
    """New judges load what the file has by then: the speedup that counted was over another reference."""
    names = ["1_1_s0.py", "1_1_s1.py"]
    made = run(
        tmp_path / "r",
        *(judged("1/1", 2.0 - i / 2, name=n, sample=i, problem_sha256="a" * 64) for i, n in enumerate(names)),
    )
    solutions = {name: read_solution(samples[1] / name, samples[1]) for name in names}

    class OnAnotherText(Repeats):
        def evaluate(self, pairs, status, workload):
            for item in super().evaluate(pairs, status, workload):
                item.result.problem_sha256 = "b" * 64
                yield item

    executor = OnAnotherText({"1_1_s0.py": 9.0})
    (skipped,) = confirm_best(
        made, lambda found: (None, solutions[found.solution["name"]]), PrivateCopies(tmp_path / "copies"),
        lambda builds: nullcontext(executor), lambda item: made.append(item.result), lambda count: None,
        lambda what, text: None,
    )  # fmt: skip
    assert executor.asked == ["1_1_s0.py"] and len(made.results) == 2
    assert skipped.changed and "its problem changed during the run" in skipped.reason


def test_single_samples_ties_and_what_was_confirmed_need_nothing():
    confirmed = judged("1/3", 2.0)
    confirmed.confirms = {"speedup": 2.2}
    results = [
        judged("1/1", 2.0), result("1/1", status=Status.CRASHED, sample=1),
        judged("1/2", 1.004), judged("1/2", 0.5, sample=1),
        confirmed, judged("1/3", 1.5, sample=1),
    ]  # fmt: skip
    assert winners.unconfirmed(results) == []


def test_a_second_best_has_its_turn_where_the_confirmation_of_the_first_is_lower():
    first, second = judged("1/1", 2.0), judged("1/1", 1.5, sample=1)
    assert winners.unconfirmed([first, second]) == [first]
    again = judged("1/1", 1.2)
    again.confirms = winners.first_measurement(first)
    assert winners.unconfirmed([again, second]) == [second]
    assert winners.bias([again, second]) == {"solutions": 1, "bias": pytest.approx(2.0 / 1.2)}


def test_what_is_not_at_hand_any_more_is_left_as_it_is(tmp_path):
    made = run(tmp_path / "r", judged("1/1", 2.0), judged("1/1", 1.5, sample=1))
    refuse = lambda *_: pytest.fail("there is nothing to do")  # noqa: E731
    copies = PrivateCopies(tmp_path / "copies")
    assert confirm_best(made, lambda result: None, copies, refuse, refuse, refuse, refuse) == []


@pytest.mark.parametrize("free_mb", [200, 40])
def test_who_finds_no_room_beside_others_is_measured_after_them(tmp_path, monkeypatch, free_mb):
    """Whose best named large files kept those of others, or a second of its own, from being measured again."""
    monkeypatch.setattr("harness.solution.private_copy.free_bytes", lambda folder: free_mb << 20)
    names = ["1_1_s0.py", "1_2_s0.py"]
    measured = [judged(p, 2.0, name=n) for p, n in zip(("1/1", "1/2"), names)]
    made = run(tmp_path / "r", *measured, *(judged(p, 1.5, sample=1) for p in ("1/1", "1/2")))
    (folder := tmp_path / "solutions").mkdir()
    for name in names:
        (folder / name).write_text(f"import torch\nclass ModelNew(torch.nn.Module): data = '{name}.bin'\n")
        (folder / f"{name}.bin").write_bytes(os.urandom(15 << 20))
    solutions = {name: read_solution(folder / name, folder) for name in names}

    class Executor:
        def evaluate(self, pairs, status, workload):
            for at, solution in pairs:
                assert not solution.path.is_relative_to(folder)
                yield Evaluated(solution, judged(at, 2.0, name=solution.name))

    counts = []
    skipped = confirm_best(
        made, lambda found: (found.problem, solutions[found.solution["name"]]), PrivateCopies(tmp_path / "copies"),
        lambda builds: nullcontext(Executor()), lambda item: made.append(item.result), counts.append,
        lambda what, text: None,
    )  # fmt: skip
    assert (counts, len(skipped)) == ([1, 1] if free_mb == 40 else [2], 0)


def test_who_had_room_in_an_earlier_life_of_the_run_is_told_as_not_measured_again(tmp_path, monkeypatch):
    monkeypatch.setattr("harness.solution.private_copy.free_bytes", lambda folder: 200 << 20)
    made = run(tmp_path / "r", judged("1/1", 2.0, name="1_1_s0.py"), judged("1/1", 1.5, sample=1))
    (path := tmp_path / "1_1_s0.py").write_text("import torch\nclass ModelNew(torch.nn.Module): data = 'data.bin'\n")
    (tmp_path / "data.bin").write_bytes(os.urandom(120 << 20))
    refuse = lambda *_: pytest.fail("there is nothing to do")  # noqa: E731
    copies, solution = PrivateCopies(tmp_path / "copies"), read_solution(path, tmp_path)
    skipped = confirm_best(made, lambda found: ("1/1", solution), copies, refuse, refuse, refuse, refuse)
    assert ["copies of them may take half of what is free" in one.reason for one in skipped] == [True]


def test_a_record_keeps_what_it_confirms(tmp_path):
    again = judged("1/1", 1.2)
    again.confirms = winners.first_measurement(judged("1/1", 2.0))
    run(tmp_path / "r", again)
    (found,) = Run.load(tmp_path / "r").latest()
    assert found.confirms["speedup"] == 2.0 and found.confirms["verdict"] == "faster" and settled.confirmed(found)
