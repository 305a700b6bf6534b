"""A run directory loses nothing: interrupted writes, full disks, other configurations."""

import contextlib
import errno
import json
import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from logs import NO_LOGS, no_log, no_room, short_files

from harness.problem.module import ProblemFile, ProblemId
from harness.result import Result, Status
from harness.solution.discover import Solution
from harness.solution.includes import digest_of
from kernelbench.run import _MOST_NAMES, CONFIG, LOG, FullLog, Run, RunError, WriteError
from kernelbench.run_files import log, unevaluated
from kernelbench.run_files.folder import foreign, read_lines
from kernelbench.run_files.log import append_line, write_below, write_named, write_whole

CONFIGURATION = {"solutions": "s", "problem_dir": None, "workload": None, "precision": "fp32", "device": "cpu"}

EXTRA = {"problems": {}, "baselines": {"compile": {}}}


def result(problem="1/1", name="a.py", sha256="0", status=Status.OK, **more):
    solution = {"name": name, "sample": 0, "kind": "py", "language": "pytorch", "sha256": sha256, **more}
    return Result(problem=problem, problem_name="x", workload={"name": "small"}, solution=solution, status=status)


def solution(problem="1/1", name="a.py", sha256="0", taken_in=()):
    return Solution(Path(name), name, ProblemId.parse(problem), 0, "py", "pytorch", "any", sha256, taken_in)


def test_results_are_appended_and_read_again(tmp_path):
    run = Run.create(tmp_path / "r", CONFIGURATION)
    run.append(result())
    run.append(result("1/2", status=Status.CRASHED))
    assert Run.load(tmp_path / "r").results == run.results
    assert len((tmp_path / "r" / LOG).read_text().splitlines()) == 2


def test_a_run_is_not_overwritten(tmp_path):
    Run.create(tmp_path, CONFIGURATION)
    with pytest.raises(RunError, match="--resume, or choose another --out"):
        Run.create(tmp_path, CONFIGURATION)


def test_two_do_not_write_into_one_run(tmp_path):
    first = Run.open(tmp_path, CONFIGURATION, resume=True)
    with pytest.raises(RunError, match="another kb is writing"):
        Run.open(tmp_path, CONFIGURATION, resume=True)
    first.append(result())
    first.close()
    assert len(Run.open(tmp_path, CONFIGURATION, resume=True).results) == 1


def test_two_do_not_continue_a_run_that_has_no_log(tmp_path):
    """Its results were removed, or its first kb is about to make it. Without a log there was nothing to lock."""
    Run.create(tmp_path, CONFIGURATION)
    (tmp_path / LOG).unlink()
    with contextlib.closing(Run.open(tmp_path, CONFIGURATION, resume=True)):
        with pytest.raises(RunError, match="another kb is writing"):
            Run.open(tmp_path, CONFIGURATION, resume=True)


def test_resume_finds_what_is_missing_or_has_changed(tmp_path):
    Run.create(tmp_path, CONFIGURATION).append(result())
    run = Run.resume(tmp_path, CONFIGURATION)
    changed, other, same = solution(sha256="1"), solution("1/2"), solution()
    cases = [(one, "small") for one in (same, changed, other)] + [(same, "full")]
    assert run.missing(cases) == cases[1:]


def test_resume_notices_that_a_file_which_a_solution_takes_in_has_changed(tmp_path):
    run = Run.create(tmp_path, CONFIGURATION)
    old, new = (solution(taken_in=((Path("a.cuh"), digest),)) for digest in ("old", "new"))
    run.append(result(helpers=old.helpers))
    assert run.missing([(old, "small"), (new, "small")]) == [(new, "small")]
    run.append(result(helpers=new.helpers, status=Status.CRASHED))
    assert [r.status for r in run.latest()] == [Status.CRASHED]


def test_resume_evaluates_again_what_has_its_former_content_back(tmp_path):
    """Right, wrong, and right as before: what ``latest`` shows is not of the file that is there."""
    run = Run.create(tmp_path, CONFIGURATION)
    for sha256, status in (("wrong", Status.WRONG_VALUE), ("right", Status.OK)):
        run.append(result(sha256=sha256, status=status))
    assert run.missing([(solution(sha256="wrong"), "small")]) == [(solution(sha256="wrong"), "small")]
    assert run.missing([(solution(sha256="right"), "small")]) == []


def test_results_are_of_no_problem_that_has_changed_or_cannot_be_read(tmp_path):
    run, files = Run.create(tmp_path / "r", CONFIGURATION), []
    for number in (1, 2, 3):
        file = ProblemFile(ProblemId(1, number), "x", tmp_path / f"{number}_x.py")
        file.path.write_text("x = 1\n")
        run.append(replace(result(str(file.id)), problem_sha256=digest_of(file.path)))
        files.append(file)
    files[1].path.write_text("x = 2\n")
    files[2].path.unlink()
    without_results = ProblemFile(ProblemId(1, 4), "x", tmp_path / "none.py")
    assert [r.problem for r in run.of_other_problems([*files, without_results])] == ["1/2", "1/3"]
    assert run.of_other_problems(files[:1]) == []


def test_the_latest_result_of_a_file_counts(tmp_path):
    run = Run.create(tmp_path, CONFIGURATION)
    run.append(result(status=Status.TIMEOUT))
    run.append(result(sha256="1"))
    assert [r.status for r in run.latest()] == [Status.OK]


def test_resume_of_nothing_starts_a_run(tmp_path):
    assert Run.resume(tmp_path / "new", CONFIGURATION).results == []


def cut_log(folder, cut):
    """Make a run of two results whose log lacks its last bytes; return the log."""
    run = Run.create(folder, CONFIGURATION)
    run.append(result())
    run.append(result("1/2"))
    os.truncate(folder / LOG, (folder / LOG).stat().st_size - cut)
    return folder / LOG


@pytest.mark.parametrize("cut", [2, 10, 200])
def test_a_torn_last_line_is_dropped_and_the_rest_kept(tmp_path, cut):
    cut_log(tmp_path, cut)
    resumed = Run.resume(tmp_path, CONFIGURATION)
    assert resumed.torn and [r.problem for r in resumed.results] == ["1/1"]
    resumed.append(result("1/3"))
    assert [r.problem for r in Run.load(tmp_path).results] == ["1/1", "1/3"]


def test_a_last_line_that_lacks_its_end_only_is_kept(tmp_path):
    """Some editors leave it so, and it was taken for half-written."""
    log = cut_log(tmp_path, 1)
    resumed = Run.resume(tmp_path, CONFIGURATION)
    assert not resumed.torn and [r.problem for r in resumed.results] == ["1/1", "1/2"]
    resumed.append(result("1/3"))
    assert [r.problem for r in Run.load(tmp_path).results] == ["1/1", "1/2", "1/3"]
    assert log.read_bytes().count(b"\n") == 3


@pytest.mark.parametrize("before, now, refused", [(2, 4, True), (2, 2, False), (None, 4, False)])
def test_a_run_on_a_cpu_goes_on_with_as_many_threads_where_it_says_them(tmp_path, before, now, refused):
    """Times by two numbers of threads stood in one log."""
    Run.create(tmp_path, CONFIGURATION | ({"threads": before} if before else {})).append(result())
    with pytest.raises(RunError, match="threads was 2 and is 4") if refused else contextlib.nullcontext():
        Run.resume(tmp_path, CONFIGURATION | {"threads": now})


def test_a_run_that_is_refused_keeps_its_torn_line(tmp_path):
    """It may be no run of ours: a file was shortened before anybody looked at what it holds."""
    log = cut_log(tmp_path, 2)
    before = log.read_bytes()
    with pytest.raises(RunError, match="another configuration"):
        Run.resume(tmp_path, CONFIGURATION | {"precision": "fp16"})
    assert log.read_bytes() == before


@pytest.mark.parametrize("damage", ["garbage", "[]", "{}", "9" * 5000, "[" * 100_000], ids=range(5))
def test_damage_elsewhere_is_an_error_with_the_line(tmp_path, damage):
    run = Run.create(tmp_path, CONFIGURATION)
    run.append(result())
    log = tmp_path / LOG
    log.write_text(f"{damage}\n{log.read_text()}")
    with pytest.raises(RunError, match="line 1, is no result"):
        Run.resume(tmp_path, CONFIGURATION)


def test_a_record_of_another_format_is_refused(tmp_path):
    Run.create(tmp_path, CONFIGURATION)
    record = replace(result()).to_json() | {"format": 99}
    (tmp_path / LOG).write_text(json.dumps(record) + "\n")
    with pytest.raises(RunError, match="format 99"):
        Run.load(tmp_path)


@pytest.mark.parametrize(
    "key, value", [("precision", "fp16"), ("device", "H100"), ("workload", "full"), ("solutions", "t")]
)
def test_another_configuration_is_refused_and_named(tmp_path, key, value):
    Run.create(tmp_path, CONFIGURATION).append(result())
    with pytest.raises(RunError, match=f"another configuration: {key} was"):
        Run.resume(tmp_path, CONFIGURATION | {key: value})


def test_a_run_without_results_takes_another_configuration(tmp_path):
    Run.create(tmp_path, CONFIGURATION)
    Run.resume(tmp_path, CONFIGURATION | {"precision": "fp16"})
    assert Run.load(tmp_path).config["precision"] == "fp16"


def test_a_folder_by_another_name_is_the_same_configuration(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Run.create(tmp_path / "run", CONFIGURATION | {"solutions": "mine"}).append(result())
    assert len(Run.resume(tmp_path / "run", CONFIGURATION | {"solutions": str(tmp_path / "mine")}).results) == 1


def test_a_run_whose_beginning_was_interrupted_can_be_resumed(tmp_path):
    Run.create(tmp_path, CONFIGURATION)
    (tmp_path / LOG).unlink()
    with contextlib.closing(Run.open(tmp_path, CONFIGURATION, resume=True)) as run:
        assert run.results == []


def test_a_full_disk_leaves_no_half_of_a_run_behind(tmp_path):
    with short_files(2), pytest.raises(WriteError, match="cannot make a run directory in .*: File too large"):
        Run.create(tmp_path / "run", CONFIGURATION)
    Run.create(tmp_path / "run", CONFIGURATION)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "no configuration"),
        ('{"problems": Infinity}', "problems must be text of one line, or null, and is inf"),
        ('{"solutions": -1}', "solutions must be a path"),
        ('{"precision": [1]}', "precision must be text"),
        ("{", "is not JSON"),
        (None, "cannot be read: Is a directory"),
    ],
)
def test_a_damaged_configuration_is_named(tmp_path, content, message):
    Run.create(tmp_path, CONFIGURATION)
    (tmp_path / CONFIG).unlink()
    (tmp_path / CONFIG).mkdir() if content is None else (tmp_path / CONFIG).write_text(content)
    with pytest.raises(RunError, match=message):
        Run.load(tmp_path)


@pytest.mark.parametrize("limit", ["problems", "baselines"])
def test_a_run_of_too_much_is_not_read(tmp_path, monkeypatch, limit):
    """Draws for the intervals of 50,000 problems took 6 GB, and those over 14,400 baselines 23 GB."""
    monkeypatch.setitem(_MOST_NAMES, limit, 1)
    run = Run.create(tmp_path, CONFIGURATION)
    run.append(replace(result("1/19"), baselines={"eager": {}}))
    assert len(Run.load(tmp_path).results) == 1
    more = replace(result("1/20" if limit == "problems" else "1/19"), baselines={"eager": {}, **EXTRA[limit]})
    append_line(tmp_path / LOG, more.to_json())
    with pytest.raises(RunError, match=f"results of 2 {limit}, and at most 1 are read"):
        Run.load(tmp_path)


def test_no_more_problems_are_written_than_are_read(tmp_path, monkeypatch):
    monkeypatch.setitem(_MOST_NAMES, "problems", 2)
    run = Run.create(tmp_path, CONFIGURATION)
    for problem in ("1/19", "1/20", "1/19"):
        run.append(result(problem))
    with pytest.raises(FullLog, match="results of 2 problems: go on in another directory"):
        run.append(result("1/21"))
    assert len(Run.load(tmp_path).results) == 3


def test_no_more_baselines_are_written_than_are_read(tmp_path, monkeypatch):
    """A run of others with as many as may be could be continued, and was not readable any more then."""
    monkeypatch.setitem(_MOST_NAMES, "baselines", 2)
    Run.create(tmp_path, CONFIGURATION).append(replace(result("1/19"), baselines={"a": {}, "b": {}}))
    run = Run.load(tmp_path)
    with pytest.raises(FullLog, match="results of 2 baselines: go on in another directory"):
        run.append(replace(result("1/20"), baselines={"eager": {}}))
    assert len(Run.load(tmp_path).results) == 1


def test_no_more_lines_are_written_than_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr("kernelbench.run_files.log.MOST_LINES", 2)
    run = Run.create(tmp_path, CONFIGURATION)
    run.append(result("1/19"))
    with (tmp_path / LOG).open("ab") as file:  # of others
        file.write(json.dumps(result("1/20").to_json()).encode() + b"\n")
    with pytest.raises(FullLog, match="it has 2 lines, and no more are read"):
        run.append(result("1/21"))
    assert len(Run.load(tmp_path).results) == 2


def test_a_configuration_that_is_too_large_once_it_is_written_is_refused_before(tmp_path):
    """Each letter beyond ASCII takes six bytes then, and the run could not be read any more."""
    large = {**CONFIGURATION, "settings": {"text": "\u00e9" * 200_000}}
    with pytest.raises(RunError, match="would have 1,200,... bytes, and at most 1,048,576 are read"):
        Run.create(tmp_path / "new", large)
    assert not (tmp_path / "new").exists()
    Run.create(tmp_path / "r", CONFIGURATION)
    (tmp_path / "r" / CONFIG).write_text(json.dumps(large, ensure_ascii=False))
    with pytest.raises(RunError, match="would have"):
        Run.resume(tmp_path / "r", large)
    assert Run.load(tmp_path / "r").config == large


def test_a_file_is_no_run(tmp_path):
    (tmp_path / "kernel.py").write_text("")
    for use in (Run.load, lambda path: Run.create(path, CONFIGURATION)):
        with pytest.raises(RunError, match="kernel.py is a file, and a run is a directory"):
            use(tmp_path / "kernel.py")


def test_a_file_is_written_whole_or_stays_as_it_was(tmp_path):
    target = tmp_path / "page.html"
    write_whole(target, "before")

    with short_files(2), pytest.raises(OSError, match="page.html"):
        write_whole(target, "after")
    assert target.read_text() == "before" and list(tmp_path.iterdir()) == [target]


def test_a_link_and_a_pipe_that_a_person_names_are_written_through(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "target")
    write_named(tmp_path / "link", "text")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "target").read_text() == "text"
    write_named(Path("/dev/null"), "text")
    assert Path("/dev/null").is_char_device()


@pytest.mark.parametrize("kind", [("config.json", "results.jsonl"), ("experiment.json",)], ids=["run", "experiment"])
def test_a_link_in_a_run_is_not_written_through_though_a_person_names_it(tmp_path, kind):
    """`kb report theirs -o theirs/report.html` wrote over the file of ours that this led to."""
    for name in kind:
        (tmp_path / "theirs" / "inner").mkdir(parents=True, exist_ok=True)
        (tmp_path / "theirs" / name).touch()
    (target := tmp_path / "ours").write_text("before")
    for name in ("report.html", "inner/a.csv"):
        (tmp_path / "theirs" / name).symlink_to(target)
        write_named(tmp_path / "theirs" / name, "text")
        assert not (tmp_path / "theirs" / name).is_symlink() and (tmp_path / "theirs" / name).read_text() == "text"
    (tmp_path / "theirs/out").symlink_to(tmp_path)
    with pytest.raises(OSError):
        write_named(tmp_path / "theirs/out/ours", "text")
    assert target.read_text() == "before"


def test_a_link_in_a_run_directory_is_replaced(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "target")
    write_whole(tmp_path / "link", "text")
    assert not (tmp_path / "link").is_symlink() and (tmp_path / "link").read_text() == "text"
    assert not (tmp_path / "target").exists()


def test_a_hidden_file_beside_what_is_written_stays(tmp_path):
    """`-o env` removed the `.env` beside it, whose name the draft had."""
    (tmp_path / ".env").write_text("mine")
    (tmp_path / ".link").symlink_to(tmp_path / "target")
    write_whole(tmp_path / "env", "text")
    write_whole(tmp_path / "link", "text")
    assert (tmp_path / ".env").read_text() == "mine" and (tmp_path / ".link").is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == [".env", ".link", "env", "link"]


def test_a_configuration_that_is_a_link_is_neither_read_nor_written(tmp_path):
    """A message about it would show what is in the file that it leads to."""
    Run.create(tmp_path / "r", CONFIGURATION)
    mine = (tmp_path / "r" / CONFIG).rename(tmp_path / "mine.json")
    before = mine.read_text()
    (tmp_path / "r" / CONFIG).symlink_to(mine)
    for use in (Run.load, lambda path: Run.resume(path, CONFIGURATION | {"precision": "bf16"})):
        with pytest.raises(RunError, match=f"{CONFIG} cannot be read: it is not a plain file, but a link"):
            use(tmp_path / "r")
    assert mine.read_text() == before


@pytest.mark.parametrize("name", ["r", "workspaces"])
@pytest.mark.parametrize("place", ["solutions", "sources", "workspaces/1_19", "solutions/level1"])
def test_a_folder_of_others_that_is_a_link_is_not_written_into(tmp_path, place, name):
    run = Run.create(tmp_path / name, CONFIGURATION)
    link = run.path / place
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(tmp_path)
    with pytest.raises(RunError, match=f"{place} is a link: choose another --out"):
        Run.open(run.path, CONFIGURATION, resume=True)
    link.unlink()
    (run.path / "workspaces/1_20/venv").mkdir(parents=True)
    (run.path / "workspaces/1_20/venv/lib").symlink_to(tmp_path)  # of a program that made it there
    Run.open(run.path, CONFIGURATION, resume=True).close()


@pytest.mark.parametrize("link", ["solutions", "solutions/level1"])
def test_nothing_is_written_below_a_folder_that_becomes_a_link_while_a_run_is_open(tmp_path, link):
    """A look for links when it is opened is not enough: attempts come seconds or hours later."""
    run, mine = tmp_path / "run", tmp_path / "mine"
    (mine / "level1").mkdir(parents=True)
    kept = [mine / "19_s1.py", mine / "level1" / "19_s1.py"]
    for path in kept:
        path.write_text("mine")
    write_below(run.parent, "run/solutions/level1/19_s0.py", "an attempt")
    assert (run / "solutions/level1/19_s0.py").read_text() == "an attempt"
    (run / link).rename(tmp_path / "before")
    (run / link).symlink_to(mine)
    with pytest.raises(OSError, match="19_s1.py") as failure:
        write_below(run, "solutions/level1/19_s1.py", "an attempt")
    assert failure.value.errno == errno.ENOTDIR
    assert [path.read_text() for path in kept] == ["mine", "mine"] and len(list(mine.rglob("*"))) == 3


def test_workspaces_of_an_experiment_are_those_of_its_runs(tmp_path):
    """A folder of that name anywhere, the experiment's own too, was not looked into."""
    for folder in ("runs/a/s0_r0/workspaces/1_19/venv", "workspaces/runs", "runs/workspaces"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "runs/a/s0_r0/workspaces/1_19/venv/lib").symlink_to(tmp_path)
    assert foreign(tmp_path, depth=3) == ""
    for place in ("workspaces/runs/a", "runs/workspaces/s0_r0"):
        (tmp_path / place).symlink_to(tmp_path)
        assert foreign(tmp_path, depth=3) == f"{tmp_path / place} is a link"
        (tmp_path / place).unlink()


def test_what_counts_is_for_the_last_command_to_say(tmp_path):
    """A run of one problem that went on with a hundred stood as one of one solved, and a gate looked at that one."""
    run = Run.create(tmp_path / "r", CONFIGURATION | {"problems": "1/1"})
    run.append(result())
    for selector in ("level1", None):
        Run.resume(tmp_path / "r", CONFIGURATION | {"problems": selector})
        assert Run.load(tmp_path / "r").config["problems"] == selector


def test_a_run_is_continued_with_as_many_held_out_workloads_as_it_began_with(tmp_path):
    """Results without any counted where some were asked for."""
    run = Run.create(tmp_path / "r", CONFIGURATION)
    run.append(result())
    with pytest.raises(RunError, match="held_out was None and is 7"):
        Run.resume(tmp_path / "r", CONFIGURATION | {"held_out": 7})
    assert len(Run.resume(tmp_path / "r", CONFIGURATION | {"held_out": 0}).results) == 1


def test_a_link_that_leads_to_itself_is_no_folder(tmp_path):
    run = Run.create(tmp_path / "r", CONFIGURATION)
    (run.path / "notes").symlink_to("notes")
    Run.open(run.path, CONFIGURATION, resume=True).close()


def test_a_folder_where_a_file_belongs_is_an_error_that_says_so(tmp_path):
    run = Run.create(tmp_path / "r", CONFIGURATION)
    (run.path / "leaderboard.md").mkdir()
    with pytest.raises(WriteError, match="cannot write .*leaderboard.md: Is a directory; put it right"):
        run.write("leaderboard.md", "x")


def test_a_full_disk_is_an_error_that_says_what_is_kept(tmp_path, monkeypatch):
    run = Run.create(tmp_path, CONFIGURATION)
    no_room(monkeypatch)
    with pytest.raises(RunError, match="No space left on device.*kept"):
        run.append(result())
    assert (tmp_path / LOG).read_bytes() == b""


@pytest.mark.parametrize("name", ["reviews.jsonl", "unevaluated.jsonl", "trajectory.jsonl", "solutions"])
@pytest.mark.parametrize("resume", [False, True])
def test_a_new_run_begins_in_an_empty_folder(tmp_path, name, resume):
    """Reviews that a pull request had brought to the place of a run were taken for the run's."""
    (tmp_path / name).touch()
    with pytest.raises(RunError, match=f"has {name}, and a new run begins in an empty folder"):
        Run.open(tmp_path, CONFIGURATION, resume)
    (tmp_path / name).rename(tmp_path / f".{name}")  # the draft of a file that was being written
    Run.open(tmp_path, CONFIGURATION, resume).close()


def test_a_log_does_not_grow_beyond_what_is_read_of_one(tmp_path, monkeypatch):
    """It did, and everything in it was lost to whoever wanted to go on."""
    run = Run.create(tmp_path, CONFIGURATION)
    run.append(result())
    before = (tmp_path / LOG).read_bytes()
    monkeypatch.setattr("kernelbench.run_files.log.MOST_LOG_BYTES", 2 * len(before) - 1)
    with pytest.raises(WriteError, match=f"{LOG} is full: .* Everything up to here is kept; go on in another"):
        run.append(result())
    assert (tmp_path / LOG).read_bytes() == before
    assert len(Run.load(tmp_path).results) == 1


def test_a_log_of_others_that_is_a_link_is_not_written_through(tmp_path):
    run = Run.create(tmp_path / "r", CONFIGURATION)
    notes = tmp_path / "notes"
    (run.path / LOG).unlink()
    (run.path / LOG).symlink_to(notes)
    with pytest.raises(WriteError, match=f"{LOG}: it is a link"):
        run.append(result())
    with pytest.raises(RunError):
        Run.load(run.path)
    assert not notes.exists()
    notes.write_text("a line\nand another")
    with pytest.raises(RunError, match="it is not a plain file, but a link"):
        Run.load(run.path)
    assert notes.read_text() == "a line\nand another"


def test_a_log_that_becomes_a_link_before_its_half_line_is_cut_off_is_left_alone(tmp_path, monkeypatch):
    run = Run.create(tmp_path / "r", CONFIGURATION)
    mine = tmp_path / "mine"
    mine.write_text("a text of the user's")
    (run.path / LOG).write_text('{"half')

    def exchanged(path, most):
        found = read_lines(path, most)
        if path.name == LOG:
            path.unlink()
            path.symlink_to(mine)
        return found

    monkeypatch.setattr(log, "read_lines", exchanged)
    run = Run.load(run.path)
    with pytest.raises(WriteError, match=f"{LOG}: it is a link"):
        run.append(result())
    assert mine.read_text() == "a text of the user's"


def test_no_run_directory(tmp_path):
    with pytest.raises(RunError, match=f"no {CONFIG}"):
        Run.load(tmp_path)


def test_a_run_whose_configuration_names_a_criterion_of_an_earlier_time_is_read_and_continued(tmp_path):
    earlier = CONFIGURATION | {"criterion": "sem"}
    Run.create(tmp_path, earlier).append(result())
    assert len(Run.load(tmp_path).results) == len(Run.resume(tmp_path, CONFIGURATION).results) == 1


def test_records_of_format_1_have_the_names_of_format_2_and_keep_their_figures():
    path = Path(__file__).parents[2] / "results" / "h100" / "references"
    old = [json.loads(line) for line in (path / "results.jsonl").read_text().splitlines()]
    new = {(r.problem, r.solution["name"]): r for r in Run.load(path).results}
    assert {record["format"] for record in old} == {1, 2} and {result.format for result in new.values()} == {2}
    clocks = 0
    for record in (record for record in old if record["format"] == 1):
        result = new[record["problem"], record["solution"]["name"]]
        timing, was = result.timing, record["timing"]
        assert (timing["run_to_run_rel"], timing["placements"]) == (was["between_runs"], was["places"])
        assert result.conditions.get("bandwidth_fraction") == record["conditions"].get("copy_share")
        if isinstance(was["judge_clock"], dict):
            clocks += 1
            assert timing["cross_check"]["penalty_ms"] == was["judge_clock"]["charged_ms"]
            assert timing["cross_check"]["queue_held"] == was["judge_clock"]["held"]
        assert Result.from_json(result.to_json()) == result
    assert clocks > 150


@pytest.mark.parametrize("name", ["config.json", "results.jsonl", "unevaluated.jsonl"])
@pytest.mark.parametrize("kind", NO_LOGS)
def test_a_run_of_others_that_holds_no_plain_files_is_refused_at_once(tmp_path, name, kind):
    run = Run.create(tmp_path / "r", CONFIGURATION)
    no_log(run.path / name, kind)
    with pytest.raises(RunError, match=f"{name} cannot be read: it is (no|not|too)"):
        unevaluated.read(Run.load(run.path).path)
    if name == "results.jsonl" and kind == "a pipe":
        with pytest.raises(RunError, match="cannot be read"):
            Run.open(run.path, CONFIGURATION, resume=True)


def test_a_log_of_more_lines_than_runs_have_is_not_read(tmp_path):
    """Each line is an object: five hundred megabytes of ends of lines took five gigabytes."""
    run = Run.create(tmp_path, CONFIGURATION)
    run.append(result())
    with open(tmp_path / LOG, "ab") as file:
        file.write(b"\n" * 1_000_001)
    with pytest.raises(RunError, match="it is too large: 1,000,002 lines, and the limit is 1,000,000"):
        Run.load(tmp_path)


def test_first_measurements_are_of_what_counts(tmp_path):
    """A replay took results of a content that was replaced."""
    run = Run.create(tmp_path, CONFIGURATION)
    old, new = result(sha256="old"), result(sha256="new")
    again = result(sha256="new"), result(name="b.py")
    for one in again:
        one.confirms = {"median_ms": 1.0}
    for one in (old, new, result(name="b.py"), *again):
        run.append(one)
    assert run.measured_first() == [new, run.results[2]] and run.latest() == run.results[3:]


@pytest.mark.parametrize("log", ["results.jsonl", "unevaluated.jsonl"])
def test_nothing_is_written_into_a_log_that_is_a_file_elsewhere_too(tmp_path, log):
    """An archive brought a second name of a file of its reader's, who continued the run: lines were added there."""
    run = Run.create(tmp_path / "run", CONFIGURATION)
    mine = tmp_path / "mine"
    mine.write_text("alias ls=ls")
    (run.path / log).unlink(missing_ok=True)
    os.link(mine, run.path / log)
    with pytest.raises(WriteError, match="it has 2 names, one perhaps elsewhere: put a copy in its place"):
        append_line(run.path / log, {})
    assert mine.read_text() == "alias ls=ls"


def test_of_two_who_begin_a_run_at_once_one_does(tmp_path):
    """Both said that they had, and the results of one were gone."""
    ends = []

    def begin(number):
        try:
            ends.append(Run.open(tmp_path / "run", CONFIGURATION | {"device": str(number)}, resume=False))
        except RunError:
            ends.append(None)

    threads = [threading.Thread(target=begin, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (winner,) = filter(None, ends)
    assert Run.load(tmp_path / "run").config["device"] == winner.config["device"]


@pytest.mark.parametrize("name", ["calls.jsonl", "trajectory.jsonl", "facts.jsonl"])
def test_another_configuration_is_refused_where_a_solver_has_worked(tmp_path, name):
    """Answers of another model, in a run that ended before its first result, were taken for the new one's."""
    run = Run.create(tmp_path, CONFIGURATION | {"model": "one"})
    (tmp_path / name).touch()
    Run.resume(tmp_path, CONFIGURATION | {"model": "two"})
    (tmp_path / name).write_text("{}\n")
    with pytest.raises(RunError, match="another configuration: model was 'two' and is 'one'"):
        Run.resume(tmp_path, run.config)
    assert Run.resume(tmp_path, CONFIGURATION | {"model": "two"}).config["model"] == "two"


def test_a_folder_that_cannot_be_looked_into_is_an_error_that_says_so(tmp_path):
    """Python before 3.12 raises for what is asked whether it is there, and `kb` asked to report a fault of its own."""
    place = tmp_path / ("x" * 300)
    for resume in (False, True):
        with pytest.raises(WriteError, match="cannot make a run directory in .*: File name too long"):
            Run.open(place, CONFIGURATION, resume)
    with pytest.raises(RunError, match="cannot be read: File name too long"):
        Run.load(place)


def on(workload, name="a.py", status=Status.OK):
    return replace(result(name=name, status=status), workload={"name": workload})


TWO = CONFIGURATION | {"workload": "small, full", "track": "open"}


@pytest.mark.parametrize("read", [Run.whole, Run.measured_first])
def test_a_solution_is_whole_once_it_is_evaluated_on_all_workloads_of_the_run(tmp_path, read):
    """A run that was killed between two workloads told a solution of which half was known as right and 3.00x."""
    run = Run.create(tmp_path, TWO)
    run.append(on("small"))
    assert read(run) == [] and run.solutions() == [] and len(run.latest()) == 1
    assert run.missing([(solution(), "small"), (solution(), "full")]) == [(solution(), "full")]
    run.append(on("full"))
    assert len(read(run)) == 2 and len(run.solutions()) == 1


def test_what_is_wrong_on_one_workload_is_whole_without_the_others(tmp_path):
    run = Run.create(tmp_path, TWO)
    run.append(on("full", status=Status.WRONG_VALUE))
    assert [one.status for one in run.solutions()] == [Status.WRONG_VALUE] and len(run.measured_first()) == 1


@pytest.mark.parametrize("workload", [None, "all", "small"])
def test_one_workload_is_whole_where_the_run_names_no_others(tmp_path, workload):
    run = Run.create(tmp_path, CONFIGURATION | {"workload": workload})
    run.append(on("small"))
    assert run.whole() == run.measured_first() == run.results


ALL = CONFIGURATION | {"workload": "all", "track": "open", "workloads": {"1/1": ["small", "full"]}}


@pytest.mark.parametrize("read", [Run.whole, Run.measured_first])
def test_all_workloads_are_those_that_each_problem_had_when_it_was_evaluated(tmp_path, read):
    """The word was taken for the only workload: right and 3.00x on one of three counted as right on all of them."""
    run = Run.create(tmp_path, ALL | {"workloads": {**ALL["workloads"], "1/2": ["full"]}})
    run.append(on("small"))
    run.append(replace(on("full"), problem="1/2"))
    assert [one.problem for one in read(Run.load(tmp_path))] == ["1/2"]
    run.append(on("full"))
    assert [one.problem for one in Run.load(tmp_path).solutions()] == ["1/1", "1/2"]


def test_all_workloads_of_a_run_that_does_not_name_them_are_those_that_it_has_results_of(tmp_path):
    """Earlier versions kept the word only."""
    run = Run.create(tmp_path, CONFIGURATION | {"workload": "all", "track": "open"})
    for one in (on("small"), on("small", "b.py"), on("full", "b.py"), replace(on("small"), problem="1/2")):
        run.append(one)
    assert [(one.problem, one.solution["name"]) for one in run.solutions()] == [("1/1", "b.py"), ("1/2", "a.py")]


def test_a_run_goes_on_with_the_workloads_of_each_problem_as_they_are_now(tmp_path):
    Run.create(tmp_path, ALL).append(on("small"))
    run = Run.resume(tmp_path, ALL | {"workloads": {"1/2": ["full"]}})
    assert run.whole() == [] and run.config["workloads"] == {"1/1": ["small", "full"], "1/2": ["full"]}
    Run.resume(tmp_path, ALL | {"workloads": {"1/1": ["small"]}})
    assert len(Run.load(tmp_path).whole()) == 1


def test_imported_results_have_one_workload_each(tmp_path):
    """A configuration that an earlier version wrote for them names all of their workloads."""
    run = Run.create(tmp_path, CONFIGURATION | {"workload": "full,small"})
    for workload, name in (("small", "a.py"), ("full", "b.py")):
        run.append(on(workload, name))
    assert run.whole() == run.latest() == run.results


def test_first_measurements_are_none_of_what_was_skipped_on_a_workload(tmp_path):
    """A lineage and a replay had 3.00x of a solution that a leaderboard counted as unsolved."""
    run = Run.create(tmp_path, CONFIGURATION | {"workload": "all"})
    for name in ("a.py", "b.py"):
        run.append(on("small", name))
    skip = {"kind": "skipped", "problem": "1/1", "problem_name": "x", "solution": "a.py", "sample": 0,
            "workload": "full", "reason": "the GPU was lost", "after": 2}  # fmt: skip
    unevaluated.append(tmp_path, run.unevaluated, skip)
    assert run.measured_first() == run.whole() == run.results[1:]


def test_the_latest_results_of_one_solution_are_those_among_the_latest_of_all(tmp_path):
    """For each check of a gate those of all were looked through: 25,000 took hours."""
    run = Run.create(tmp_path, CONFIGURATION)
    assert run.latest_of("1/1", "a.py") == []
    for one in (on("small"), on("full"), on("small", "b.py"), result("1/2")):
        run.append(one)
    assert run.latest_of("1/1", "a.py") == run.results[:2] and run.latest_of("1/2", "a.py") == run.results[3:]
    run.append(on("small"))
    assert run.latest_of("1/1", "a.py") == [run.results[4], run.results[1]]
    withdrawn = {"kind": "withdrawn", "problem": "1/1", "solution": "a.py", "after": 5}
    unevaluated.append(tmp_path, run.unevaluated, withdrawn)
    assert run.latest_of("1/1", "a.py") == [] and run.latest_of("1/1", "b.py") == run.results[2:3]


def test_results_of_one_solution_are_found_without_a_look_at_those_of_all(tmp_path, monkeypatch):
    run = Run.create(tmp_path, CONFIGURATION)
    run.append(result())
    run.latest_of("1/1", "a.py")
    monkeypatch.setattr(Run, "latest", None)
    assert run.latest_of("1/1", "a.py") == run.results
