"""A result is of the files that were discovered, or of none."""

import os

import pytest

from harness.solution.discover import read_solution
from harness.solution.private_copy import private_copies
from harness.solution.unchanged import is_unchanged, stamp


@pytest.fixture
def solution(tmp_path):
    (tmp_path / "1_19.py").write_text("open('table.txt')")
    (tmp_path / "table.txt").write_text("one")
    return read_solution(tmp_path / "1_19.py")


def test_files_that_nobody_writes_are_unchanged(solution):
    before = stamp(solution)
    solution.path.read_bytes()
    assert is_unchanged(solution, before)


@pytest.mark.parametrize("name", ["1_19.py", "table.txt"])
def test_a_file_that_is_written_replaced_or_gone_is_noticed(solution, name):
    before, path = stamp(solution), solution.path.parent / name
    content = path.read_text()
    path.write_text(content + " ")
    assert not is_unchanged(solution, before)
    path.write_text(content)
    assert not is_unchanged(solution, before), "who puts the content back has had another one evaluated"
    path.unlink()
    assert not is_unchanged(solution, before)


def test_a_file_that_appears_is_in_no_copy_that_is_evaluated(tmp_path):
    (tmp_path / "1_19.py").write_text("import helper")
    solution = read_solution(tmp_path / "1_19.py")
    before = stamp(solution)
    (tmp_path / "helper.py").write_text("x = 1")
    with private_copies() as copies:
        assert [file.name for file in copies.of(solution).path.parent.rglob("*.py")] == ["1_19.py"]
    assert is_unchanged(solution, before)


def test_a_link_that_leads_to_another_file_changes_nothing_of_the_copy_that_is_evaluated(tmp_path):
    (tmp_path / "1_19.py").write_text("open('table')")
    for name in ("a", "b"):
        (tmp_path / name).write_text(name)
    (tmp_path / "table").symlink_to("a")
    solution = read_solution(tmp_path / "1_19.py")
    before = stamp(solution)
    (tmp_path / "table").unlink()
    (tmp_path / "table").symlink_to("b")
    with private_copies() as copies:
        files = copies.of(solution).path.parent.rglob("*")
        assert {file.read_text() for file in files if file.is_file()} == {"open('table')", "a"}
    assert is_unchanged(solution, before)


@pytest.mark.parametrize("seen", ["less", "more"])
def test_a_source_of_which_another_reading_sees_less_or_more_is_unchanged(solution, monkeypatch, seen):
    """A look that takes nearly as long as it may saw less in one of two, and a wrong kernel withdrew."""
    before = stamp(solution)
    monkeypatch.setattr("harness.solution.discover._facts", lambda *_: {} if seen == "less" else {"refused": "slow"})
    assert is_unchanged(solution, before)


def test_a_file_that_was_written_between_reading_and_the_stamp_is_noticed(solution):
    """And so is one with the times of the other."""
    found = solution.path.stat()
    solution.path.write_text("open('table.TXT')")
    os.utime(solution.path, ns=(found.st_atime_ns, found.st_mtime_ns))
    assert not is_unchanged(solution, stamp(solution))
