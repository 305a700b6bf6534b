"""Candidates that a run did not evaluate are kept with the reason, until they have a result."""

import json
import subprocess
from pathlib import Path

import pytest
from linear_time import in_linear_time
from logs import no_room, result, run
from warm_kb import KB

from harness.problem.module import ProblemFile, ProblemId
from harness.result import Status
from harness.solution.discover import Solution
from kernelbench.evaluation import unevaluated
from kernelbench.evaluation.executor import Skipped
from kernelbench.report.overview import overview
from kernelbench.run import Run, WriteError
from kernelbench.run_files.unevaluated import pending as pending_of
from kernelbench.run_files.unevaluated import read, skipped

RELU = ProblemFile(ProblemId(1, 19), "relu", Path("019_relu.py"))


def skip(made, name="a.py", reason="the GPU was lost", workload="small", sample=0):
    solution = Solution(Path(name), name, RELU.id, sample, "py", "pytorch", "any", "0" * 64)
    unevaluated.keep_skipped(made, Skipped(solution, reason, workload=workload), RELU)


def pending(made):
    loaded = Run.load(made.path)
    return [(entry["solution"], entry["reason"]) for entry in pending_of(loaded.results, loaded.unevaluated)]


def test_a_skipped_candidate_is_kept_with_its_reason(tmp_path):
    made = run(tmp_path / "r", result("1/1", 0.5))
    skip(made, "b.py", sample=1)
    skip(made, "a.py", "8 GB are free, 24 are needed")
    assert pending(made) == [("a.py", "8 GB are free, 24 are needed"), ("b.py", "the GPU was lost")]
    record = json.loads((made.path / "unevaluated.jsonl").read_text().splitlines()[0])
    assert record == {
        "kind": "skipped", "problem": "1/19", "problem_name": "relu", "solution": "b.py", "sample": 1,
        "workload": "small", "reason": "the GPU was lost", "after": 1,
    }  # fmt: skip


def test_a_result_takes_its_place(tmp_path):
    made = run(tmp_path / "r")
    skip(made, "a.py")
    skip(made, "b.py", workload=None)
    made.append(result("1/19", status=Status.TIMEOUT, name="a.py"))
    assert pending(made) == [("b.py", "the GPU was lost")]
    made.append(result("1/19", 0.5, name="b.py"))
    assert pending(made) == []


def test_lines_before_one_that_dismisses_them_do_not_count(tmp_path):
    made = run(tmp_path / "r")
    skip(made, "a.py", workload="small")
    skip(made, "b.py", workload="small")
    unevaluated.append(made.path, made.unevaluated, {"kind": "dismissed", "problem": "1/19", "solution": "a.py"})
    assert pending(made) == [("b.py", "the GPU was lost")]
    skip(made, "a.py", "8 GB are free", workload="full")
    assert sorted(pending(made)) == [("a.py", "8 GB are free"), ("b.py", "the GPU was lost")]


def test_many_lines_of_others_are_read_in_linear_time():
    """Each that dismisses went through all before it."""
    of = [{"problem": "1/19", "solution": f"{number}.py", "workload": None} for number in range(20_000)]
    with in_linear_time():
        assert len(skipped([one | {"kind": kind} for kind in ("skipped", "dismissed") for one in of])) == 0


@pytest.mark.parametrize("after", [2, 9 * 10**18])
@pytest.mark.parametrize("kind", ["withdrawn", "skipped"])
def test_a_line_that_says_of_more_results_than_there_are_takes_none_to_come(tmp_path, kind, after):
    """A gate held over a solution that it had just found wrong, with such a line in a run of others."""
    made = run(tmp_path / "r", result("1/1", 0.5))
    line = {"kind": kind, "problem": "1/19", "solution": "a.py", "after": after}
    if kind == "skipped":
        line |= {"problem_name": "relu", "sample": 0, "workload": "small", "reason": "the GPU was lost"}
    (made.path / "unevaluated.jsonl").write_text(json.dumps(line) + "\n")
    resumed = Run.resume(made.path, made.config)
    resumed.append(result("1/19", status=Status.WRONG_VALUE, name="a.py"))
    for again in (resumed, Run.load(made.path), Run.resume(made.path, made.config)):
        assert [r.status for r in again.latest()] == [Status.OK, Status.WRONG_VALUE]
        assert pending_of(again.results, again.unevaluated) == []
    assert len(read(made.path)) == 2


def test_a_result_on_another_workload_or_from_before_does_not(tmp_path):
    made = run(tmp_path / "r", result("1/19", 0.5, name="a.py"))
    skip(made, "a.py", "it was changed, and the GPU was lost")
    skip(made, "b.py", workload="full")
    made.append(result("1/19", 0.5, name="b.py"))
    assert [name for name, _ in pending(made)] == ["a.py", "b.py"]


def test_what_is_skipped_again_counts_once_with_its_last_reason(tmp_path):
    made = run(tmp_path / "r")
    for reason in ("the disk is full", "the GPU was lost"):
        skip(made, reason=reason)
    assert pending(made) == [("a.py", "the GPU was lost")]


def test_of_files_without_a_problem_the_last_listing_counts(tmp_path):
    made = run(tmp_path / "r")
    unevaluated.keep_unmapped(made, [])
    assert not (made.path / "unevaluated.jsonl").exists()
    files = [(Path(name), "it names no problem") for name in ("notes.py", "old.py")]
    unevaluated.keep_unmapped(made, files)
    unevaluated.keep_unmapped(made, files[:1])
    assert pending(made) == [("notes.py", "it names no problem")]
    unevaluated.keep_unmapped(made, [])
    assert pending(made) == []


def test_a_listing_like_the_last_is_not_kept_again(tmp_path):
    """A log of names that grows with each resume is full one day, and no run goes on then."""
    made = run(tmp_path / "r")
    for files in ([], [(Path("a.py"), "no problem")], [(Path("a.py"), "no problem")], [], []):
        unevaluated.keep_unmapped(made, files)
    assert [len(record["files"]) for record in made.unevaluated] == [1, 0] == [
        len(record["files"]) for record in read(made.path)
    ]


def test_a_run_that_kept_none_has_none_and_damaged_lines_are_left_out(tmp_path):
    made = run(tmp_path / "r")
    assert pending(made) == []
    skip(made)
    with (made.path / "unevaluated.jsonl").open("a") as file:
        file.write('[1]\nnull\n{"kind": "skipped"}\n{"kind": "of a later version"}\n{"kind": "skip')
    assert pending(made) == [("a.py", "the GPU was lost")]


def test_what_others_wrote_beside_a_reason_is_left_out(tmp_path):
    """An object in its place had the page show nothing."""
    made = run(tmp_path / "r")
    skip(made)
    line = (made.path / "unevaluated.jsonl").read_text()
    odd = {"toString": 1}
    files = [{"solution": "b.py", "reason": "no id", "problem": odd}]
    lines = [json.loads(line) | {"more": odd}, {"kind": "unmapped", "files": files, "more": odd}]
    (made.path / "unevaluated.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    found = read(made.path)
    assert "toString" not in repr(found) and [one["kind"] for one in found] == ["skipped", "unmapped"]


def test_a_line_that_was_cut_off_does_not_take_the_next_with_it(tmp_path):
    made = run(tmp_path / "r")
    skip(made)
    with (made.path / "unevaluated.jsonl").open("a") as log:
        log.write('{"kind": "skip')
    unevaluated.keep_unmapped(made, [(Path("b.py"), "no id")])
    assert pending(made) == [("a.py", "the GPU was lost"), ("b.py", "no id")]


def test_what_is_kept_is_not_read_again_for_each_that_is_added(tmp_path, monkeypatch):
    """24,000 files that need a GPU took four minutes to list, and ten times as many would have taken hours."""
    made = run(tmp_path / "r")
    skip(made, "a.py")
    with monkeypatch.context() as patch:
        patch.setattr("kernelbench.run_files.unevaluated.lines_if_any", None)
        for name in ("b.py", "c.py"):
            skip(made, name)
            unevaluated.withdraw_changed(
                made, Skipped(Solution(Path(name), name, RELU.id, 0, "py", "", "any", "0"), "")
            )
    assert [name for name, _ in pending(made)] == ["a.py", "b.py", "c.py"]


def test_no_room_for_it_is_an_error_that_says_what_to_do(tmp_path, monkeypatch):
    made = run(tmp_path / "r")
    no_room(monkeypatch)
    with pytest.raises(WriteError, match="No space left on device.*continue with --resume"):
        skip(made)


def test_who_was_skipped_on_a_workload_has_no_result_over_all(tmp_path):
    made = run(tmp_path / "r", result("1/19", 0.5, name="a.py"))
    skip(made, "a.py", workload="ragged")
    assert made.solutions() == Run.load(made.path).solutions() == [] and len(made.latest()) == 1
    other = result("1/19", 0.5, name="a.py")
    other.workload = {"name": "ragged", "sizes": {}}
    made.append(other)
    assert [len(one.parts) for one in Run.load(made.path).solutions()] == [2]


def test_who_was_skipped_when_measured_again_keeps_its_result(tmp_path):
    made = run(tmp_path / "r", result("1/19", 0.5, name="a.py"))
    skip(made, "a.py", workload=made.results[0].workload["name"])
    assert len(made.solutions()) == 1


def test_nothing_is_written_through_a_link(tmp_path):
    made = run(tmp_path / "r")
    (made.path / "unevaluated.jsonl").symlink_to(tmp_path / "notes")
    with pytest.raises(WriteError, match="unevaluated.jsonl: it is a link"):
        skip(made)
    assert not (tmp_path / "notes").exists()


def test_an_evaluation_keeps_what_it_could_not_evaluate(tmp_path):
    (tmp_path / "mine").mkdir()
    for name, text in [("1_19.py", "syntax error("), ("1_20.cu", ""), ("helper.py", "x = 1")]:
        (tmp_path / "mine" / name).write_text(text)
    command = [*KB, "eval", "--solutions", tmp_path / "mine", "--device", "cpu", "--out", tmp_path / "run"]
    for arguments in ([], ["--resume"]):
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=200)
        assert done.returncode == 0, done.stderr
        (summary,) = overview([Run.load(tmp_path / "run")])["runs"]
        skipped, unmapped = summary["unevaluated"]
        assert skipped["problem"] == "1/20" and skipped["reason"] == "cuda solution, needs a GPU"
        assert unmapped["solution"].endswith("helper.py") and unmapped["reason"]
        assert summary["statuses"] == {"build_error": 1}
