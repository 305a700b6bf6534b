"""The audit tells a good problem from a bad one, and the committed audit is of the suite as it is."""

import json
import os
import re
import statistics
import subprocess
from dataclasses import replace

import pytest
import torch
from warm_kb import KB

from harness.faults import MachineFault
from harness.problem.module import ProblemError, ProblemFile, ProblemId, load_problem
from harness.solution.includes import digest_of
from kernelbench import suite
from kernelbench.audit import suite_audit
from kernelbench.audit.examination import audit
from kernelbench.audit.record import METHOD, Audit, AuditFile
from kernelbench.audit.suite_audit import _audit_one

CPU = torch.device("cpu")

PROBLEM = """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.used = torch.nn.Linear(16, 16)
        self.unused = torch.nn.Parameter(torch.ones(3))
    def forward(self, x, y):
        return {forward}
def get_inputs():
    return [torch.rand(8, 16), torch.rand(8, 16)]
def get_init_inputs():
    return []
"""


def audited(tmp_path, forward, extra=""):
    path = tmp_path / "1_x.py"
    path.write_text(PROBLEM.format(forward=forward) + extra)
    return audit(load_problem(ProblemFile(ProblemId(1, 1), "x", path)).workload("full"), CPU)


def test_a_good_problem_kills_every_mutant_and_no_trivial_answer_passes(tmp_path):
    record = audited(tmp_path, "torch.relu(self.used(x)) + y")
    assert record.grade == "A" and record.score == 1.0 and record.mutants > 10
    assert record.finite and record.deterministic and record.shapes_as_declared and not record.passing
    assert record.operators == {"addmm": 1, "relu": 1, "add": 1}
    assert record.bytes == 4 * (3 * 8 * 16 + 16 * 16 + 16 + 3)
    assert record.without_effect == ["unused"]


def test_a_function_that_ignores_its_inputs_fails_unless_the_module_explains_it(tmp_path):
    record = audited(tmp_path, "torch.relu(self.used(x)) * 0")
    assert record.grade == "F" and {"zeros", "mean", "other output"} <= set(record.passing)
    assert "input 0" in record.without_effect and "input 1" in record.without_effect
    names = ["zeros", "mean", "first sample", "other output", "previous output"]
    assert audited(tmp_path, "torch.relu(self.used(x)) * 0", f"TRIVIAL = dict.fromkeys({names}, 'x 0')").grade == "C"


def test_hardened_draws_see_what_the_published_one_hides(tmp_path):
    record = audited(tmp_path, "torch.relu(x)")
    assert record.passing_as_published == ["input"] and not record.passing
    assert record.killed_as_published < record.killed == record.mutants


def test_mutants_that_compute_the_same_function_do_not_count(tmp_path):
    record = audited(tmp_path, "torch.relu(torch.relu(self.used(x)))")
    assert record.equivalent >= 1 and record.score == 1.0


@pytest.mark.parametrize(
    ("forward", "reason"),
    [
        ("x.mul_(2) + y", "overwrites its input 'x'"),
        ("torch.dropout(self.used(x), 0.5, True)", "its output is random"),
        ("x * 2.0 ** next(torch.__dict__.setdefault('calls', iter(range(100))))", "is not deterministic"),
        ("(x - 2).log()", "returns NaN in 128 of 128 elements"),
        ("None", "returns no tensor"),
    ],
)
def test_a_reference_that_no_candidate_can_be_held_to_is_named_instead_of_graded(tmp_path, forward, reason):
    with pytest.raises(ProblemError, match=reason):
        audited(tmp_path, forward)


@pytest.mark.parametrize("forward", ["torch.relu(self.used(x)) + y", "x @ y"], ids=["graded", "does not run"])
def test_a_record_is_of_the_text_that_was_audited(tmp_path, forward):
    """It was of the text that the file had at the end, so a file changed meanwhile was graded by its old text."""
    path = tmp_path / "1_x.py"
    path.write_text(PROBLEM.format(forward=forward) + "open(__file__, 'a').write('# changed')")
    digest = digest_of(path)
    assert _audit_one((ProblemFile(ProblemId(1, 1), "x", path), "full"), "cpu").sha256 == digest != digest_of(path)


@pytest.mark.parametrize("older", [{"sha256": "of another text"}, {"method": METHOD - 1}])
def test_a_grade_is_of_the_first_workload_whose_record_holds(tmp_path, older):
    """That of an older method counted, and beside a record of an older text one that holds did not."""
    path = tmp_path / "1_x.py"
    path.write_text(PROBLEM.format(forward="x"))
    file, audits = ProblemFile(ProblemId(1, 1), "x", path), AuditFile(tmp_path / "audit.jsonl")
    holds = Audit("1/1", "x", digest_of(path), "small", {})
    audits.put(replace(holds, workload="full", **older))
    assert audits.get(file) is audits.get(file, "full") is None
    audits.put(holds)
    assert audits.get(file) == audits.get(file, "small") == holds and audits.get(file, "full") is None


def test_a_reference_with_complex_outputs_is_audited(tmp_path):
    assert audited(tmp_path, "torch.complex(torch.relu(self.used(x)), y)").grade == "A"


@pytest.fixture(scope="module")
def committed():
    known = suite.audits()
    return {str(file.id): known.get(file) for file in suite.find()}


def test_the_committed_audit_covers_every_problem_as_it_is(committed):
    stale = [problem for problem, record in committed.items() if record is None]
    assert not stale, f"not audited since they changed: {stale}; run `kb problems audit {','.join(stale)}`"


def test_the_suite_tells_right_from_wrong(committed):
    records = list(committed.values())
    scores = [record.score for record in records if record.score is not None]
    assert statistics.median(scores) >= 0.95 and min(scores) >= 0.8
    assert {r.problem for r in records if r.grade not in "AB"} == {r.problem for r in records if r.explained}
    assert not [r.problem for r in records if r.grade == "F"]


def kb(*arguments, **keywords):
    command = [*KB, "problems", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, **keywords)


@pytest.mark.slow
def test_the_command_keeps_records_and_does_not_repeat_what_holds(tmp_path):
    out = tmp_path / "audit.jsonl"
    done = kb("audit", "1/19,2/80", "--out", out, "--device", "cpu")
    assert done.returncode == 0, done.stderr
    assert "A: 1, C: 1" in done.stdout
    before = out.read_text()
    assert kb("audit", "1/19,2/80", "--out", out, "--device", "cpu", "--json").stdout == before
    assert [json.loads(line)["problem"] for line in before.splitlines()] == ["1/19", "2/80"]


@pytest.mark.slow
def test_a_problem_that_does_not_run_is_recorded_and_fails_the_command(tmp_path):
    level = tmp_path / "level1"
    level.mkdir()
    (level / "1_bad.py").write_text(PROBLEM.format(forward="x @ y"))
    done = kb("audit", "all", "--problem-dir", tmp_path, "--device", "cpu")
    assert done.returncode == 1
    assert "shapes cannot be multiplied" in done.stdout
    assert AuditFile(tmp_path / "audit.jsonl").get(suite.find("1/1", tmp_path)[0]).grade == "F"


@pytest.mark.slow
def test_where_the_machine_fails_on_a_problem_it_has_no_record_and_the_others_have_theirs(tmp_path):
    """A lack of memory was a grade F that was kept, and the problem was not audited again."""
    level = tmp_path / "level1"
    level.mkdir()
    (level / "1_much.py").write_text(PROBLEM.format(forward="x.new_empty(1 << 50)"))
    (level / "2_import.py").write_text("raise MemoryError('no room')")
    (level / "3_fine.py").write_text(PROBLEM.format(forward="torch.relu(self.used(x)) + y"))
    done = kb("audit", "all", "--problem-dir", tmp_path, "--device", "cpu")
    assert done.returncode == 3 and "grade A" in done.stdout
    assert "1/1 much, full: RuntimeError" in done.stderr and "1/2 import, full: ProblemError" in done.stderr
    records = (tmp_path / "audit.jsonl").read_text().splitlines()
    assert [json.loads(line)["problem"] for line in records] == ["1/3"]


@pytest.mark.parametrize("jobs", [(), ("--jobs", 2)])
def test_a_device_that_cannot_be_used_is_said_before_the_work_and_takes_no_record_away(tmp_path, jobs):
    """With --jobs a grade F replaced each good record; without, the command asked to report a fault of its own."""
    out = tmp_path / "audit.jsonl"
    out.write_text(suite.audits().path.read_text())
    done = kb("audit", "1/19", "--again", "--out", out, "--device", "cuda:99", *jobs)
    assert done.returncode == 3 and re.match("error: no (GPU to run on|device cuda:99)", done.stderr), done.stderr
    assert out.read_text() == suite.audits().path.read_text()


def test_a_device_that_is_lost_later_leaves_problems_without_a_record():
    with pytest.raises(MachineFault, match="1/19 relu, small: DeviceError: no "):
        list(suite_audit.audit_all([(suite.find("1/19")[0], "small")], "cuda:99", 1))


@pytest.mark.slow
def test_a_process_that_ends_takes_no_other_problem_with_it(tmp_path):
    """The command waited for ever for what the process would have found."""
    level = tmp_path / "level1"
    level.mkdir()
    (level / "1_killed.py").write_text("import os\nos.kill(os.getpid(), 9)")
    (level / "2_fine.py").write_text(PROBLEM.format(forward="torch.relu(self.used(x)) + y"))
    done = kb("audit", "all", "--problem-dir", tmp_path, "--device", "cpu", "--jobs", 2)
    assert done.returncode == 3 and "grade A" in done.stdout
    assert "1/1 killed, full: its process ended" in done.stderr


@pytest.mark.slow
def test_the_command_names_what_is_wrong_with_a_reference_beside_those_that_are_graded(tmp_path):
    level = tmp_path / "level1"
    level.mkdir()
    (level / "1_in_place.py").write_text(PROBLEM.format(forward="x.mul_(2) + y"))
    (level / "2_fine.py").write_text(PROBLEM.format(forward="torch.relu(self.used(x)) + y"))
    done = kb("audit", "all", "--problem-dir", tmp_path, "--device", "cpu")
    assert done.returncode == 1 and "A: 1, F: 1" in done.stdout
    assert "1/1 in_place, full: ProblemError: the reference of 1/1 (full) cannot be judged against" in done.stdout
    assert "overwrites its input 'x'" in done.stdout


def test_an_unknown_workload_is_wrong_usage():
    done = kb("audit", "1/19,1/20", "--workload", "huge", "--device", "cpu")
    assert done.returncode == 2 and "no workload 'huge'" in done.stderr and "full, llm" in done.stderr


def test_a_place_that_cannot_be_written_is_said_before_the_work(tmp_path):
    done = kb("audit", "1/19", "--out", tmp_path / "nowhere" / "audit.jsonl", "--device", "cpu")
    assert done.returncode == 3 and "choose another file with --out" in done.stderr


@pytest.mark.parametrize(
    "line", ["{}", "5", '{"problem": 5}', "no JSON", '{"problem": "1/1", "name": "hunter2"}', '["hunter2"]']
)
def test_an_audit_of_others_that_is_none_is_one_clear_error(tmp_path, line):
    """It does not repeat what is there: a run of others may name any folder, or have a link to a file of its reader."""
    (tmp_path / "audit.jsonl").write_text(line + "\n")
    with pytest.raises(ProblemError, match="audit.jsonl, line 1, is no audit: make it anew") as caught:
        AuditFile(tmp_path / "audit.jsonl")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("kind", ["folder", "pipe", "terabytes"])
def test_an_audit_is_of_no_problem_that_is_no_plain_file(tmp_path, kind):
    """A leaderboard of somebody's run read a file of terabytes to its end."""
    record = json.loads((suite.problem_root() / "audit.jsonl").read_text().splitlines()[0])
    (tmp_path / "audit.jsonl").write_text(json.dumps(record) + "\n")
    path = tmp_path / "1_x.py"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        with path.open("w") as file:
            file.truncate(1 << 42)
    assert AuditFile(tmp_path / "audit.jsonl").get(ProblemFile(ProblemId.parse(record["problem"]), "x", path)) is None


def test_two_audits_of_one_file_keep_each_others_records(tmp_path):
    """Each wrote what it had read at its start and its own: the records of one were lost."""
    lines = (suite.problem_root() / "audit.jsonl").read_text().splitlines()[:4]
    first, second, late = (AuditFile(tmp_path / "audit.jsonl") for _ in range(3))
    for number, line in enumerate(lines):
        (first, second)[number % 2].put(Audit.from_json(json.loads(line)))
    late.put()  # before its work, to find out whether it can
    assert (tmp_path / "audit.jsonl").read_text().splitlines() == lines


def test_an_audit_is_not_written_through_a_link(tmp_path):
    (tmp_path / "mine").write_text("")
    (tmp_path / "audit.jsonl").symlink_to(tmp_path / "mine")
    record = json.loads((suite.problem_root() / "audit.jsonl").read_text().splitlines()[0])
    AuditFile(tmp_path / "audit.jsonl").put(Audit.from_json(record))
    assert (tmp_path / "mine").read_text() == "" and not (tmp_path / "audit.jsonl").is_symlink()


@pytest.mark.parametrize(
    "wrong",
    [
        {"published_flops": "x"}, {"published_bytes": []}, {"answers": {"zeros": [1, 2]}}, {"without_effect": [1]},
        {"trials": [{}]}, {"outputs": [["x"]]}, {"explained": {"zeros": 1}}, {"operators": {"mm": "x"}},
    ],
    ids=str,
)  # fmt: skip
def test_each_field_of_an_audit_of_others_is_checked(tmp_path, wrong):
    record = json.loads((suite.problem_root() / "audit.jsonl").read_text().splitlines()[0])
    (tmp_path / "audit.jsonl").write_text(json.dumps(record) + "\n")
    AuditFile(tmp_path / "audit.jsonl")
    (tmp_path / "audit.jsonl").write_text(json.dumps(record | wrong) + "\n")
    with pytest.raises(ProblemError, match="audit.jsonl, line 1, is no audit"):
        AuditFile(tmp_path / "audit.jsonl")
