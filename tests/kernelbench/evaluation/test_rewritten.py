"""Results whose files are no solutions any more count only while these are as they were, or not there."""

import os

import pytest
from linear_time import in_linear_time
from logs import result, run

from harness.solution.naming import RUN_FILES
from kernelbench.evaluation.chosen import Selection, choose
from kernelbench.evaluation.unevaluated import withdraw_rewritten

SOURCE = "# kb: problem=1/19 sample=7\nimport helper\nclass ModelNew: pass\n"


@pytest.fixture
def folder(tmp_path):
    """A directory with a folder of somebody's, where a solution has a helper, and with a solution of another's."""
    root = tmp_path / "solutions"
    (root / "own").mkdir(parents=True)
    (root / "1_19.py").write_text("class ModelNew: pass\n")
    (root / "own/x.py").write_text(SOURCE)
    (root / "own/helper.py").write_text("a = 1\n")
    return root / "own"


def chosen(root, **selection):
    return choose(Selection(root, **selection))


def evaluated(path, root):
    """A run with results of all that is there, as if it had been evaluated."""
    made = run(path)
    for solution in chosen(root).solutions:
        made.append(result(str(solution.problem), 0.5, name=solution.name, sample=solution.sample))
        made.results[-1].solution |= {"sha256": solution.sha256, "helpers": solution.helpers}
    return made


def left(made):
    return [one.solution["name"] for one in made.latest()]


def into_a_run(folder):
    for name in RUN_FILES:
        (folder / name).touch()


def into_a_link(folder):
    folder.rename(folder.parents[1] / "elsewhere")
    folder.symlink_to(folder.parents[1] / "elsewhere")


def into_a_full_folder(folder):
    for number in range(30):
        (folder / f"{number}.txt").touch()


def with_another_claim(folder):
    (folder / "y.py").write_text(SOURCE)


def write_source(folder):
    (folder / "x.py").write_text(SOURCE + "# written\n")


def write_helper(folder):
    (folder / "helper.py").write_text("a = 2\n")


def make_pipe(folder):
    (folder / "x.py").unlink()
    os.mkfifo(folder / "x.py")


def make_folder(folder):
    (folder / "x.py").unlink()
    (folder / "x.py").mkdir()


def make_link(folder):
    (folder / "x.py").rename(folder / "y.py")
    (folder / "x.py").symlink_to("y.py")


def make_helper(folder):
    (folder / "x.py").write_text("a = 1\n")
    (folder / "1_19_s9.py").write_text("import x\nclass ModelNew: pass\n")


def nothing(folder):
    pass


@pytest.mark.parametrize(
    "left_out, change",
    [
        (into_a_run, write_source), (into_a_run, write_helper), (into_a_link, write_source), (into_a_link, nothing),
        (into_a_full_folder, write_source), (into_a_full_folder, make_pipe), (into_a_full_folder, write_helper),
        (with_another_claim, write_helper), (with_another_claim, write_source), (nothing, make_pipe),
        (nothing, make_folder), (nothing, make_link), (nothing, make_helper),
    ],
)  # fmt: skip
def test_what_was_written_and_is_no_solution_any_more_does_not_count(left_out, change, folder, tmp_path, monkeypatch):
    made = evaluated(tmp_path / "run", folder.parent)
    assert left(made) == ["1_19.py", "own/x.py"]
    monkeypatch.setattr("harness.solution.entries.MAX_ENTRIES", 20)
    left_out(folder)
    change(folder)
    withdraw_rewritten(made, chosen(folder.parent))
    assert left(made) == ["1_19.py"]


def remove(folder):
    (folder / "x.py").unlink()


def remove_all(folder):
    for name in ("x.py", "helper.py"):
        (folder / name).unlink()
    folder.rmdir()


@pytest.mark.parametrize(
    "left_out, change",
    [
        (into_a_full_folder, nothing), (with_another_claim, nothing), (into_a_run, remove), (nothing, remove),
        (nothing, remove_all),
    ],
)  # fmt: skip
def test_what_is_as_it_was_or_gone_counts(left_out, change, folder, tmp_path, monkeypatch):
    made = evaluated(tmp_path / "run", folder.parent)
    monkeypatch.setattr("harness.solution.entries.MAX_ENTRIES", 20)
    left_out(folder)
    change(folder)
    withdraw_rewritten(made, chosen(folder.parent))
    assert left(made) == ["1_19.py", "own/x.py"] and not made.unevaluated


@pytest.mark.parametrize("name", ["two  blanks.py", "\\n.py", "e\u0301\u200b.py", os.fsdecode(b"no\x85text.py")])
def test_a_file_is_looked_for_by_its_name_not_as_that_is_shown(name, folder, tmp_path):
    (folder / "x.py").rename(folder / name)
    made = evaluated(tmp_path / "run", folder.parent)
    (folder / "y.py").write_text(SOURCE)
    withdraw_rewritten(made, chosen(folder.parent))
    assert len(left(made)) == 2
    (folder / name).write_text(SOURCE + "# written\n")
    withdraw_rewritten(made, chosen(folder.parent))
    assert left(made) == ["1_19.py"]


def test_where_one_file_is_selected_results_of_others_are_not_looked_at(folder, tmp_path):
    made = evaluated(tmp_path / "run", folder.parent)
    write_source(folder)
    withdraw_rewritten(made, chosen(folder.parent / "1_19.py"))
    assert left(made) == ["1_19.py", "own/x.py"]


def test_of_one_file_that_is_of_another_problem_now_the_result_stays_unless_it_was_written(folder, tmp_path):
    made = evaluated(tmp_path / "run", folder.parent)
    path = folder.parent / "1_19.py"
    withdraw_rewritten(made, chosen(path, problem="1/20"))
    assert left(made) == ["1_19.py", "own/x.py"]
    path.write_text("class ModelNew: another = 1\n")
    withdraw_rewritten(made, chosen(path, problem="1/20"))
    assert left(made) == ["own/x.py"]


@pytest.mark.parametrize("name", ["../1_19.py", "/etc/passwd", "own/\\x00.py"])
def test_nothing_outside_of_the_directory_is_looked_at_for_a_log_of_others(name, folder, tmp_path):
    made = run(tmp_path / "run", result("1/19", 0.5, name=name))
    withdraw_rewritten(made, chosen(folder.parent))
    assert left(made) == []


def test_many_results_of_files_that_are_gone_are_looked_for_in_linear_time(folder, tmp_path):
    made = evaluated(tmp_path / "run", folder.parent)
    made.results += [result("1/19", name=f"gone/{number}.py", sample=number) for number in range(5_000)]
    with in_linear_time():
        withdraw_rewritten(made, chosen(folder.parent))
    assert len(left(made)) == 5_002
