"""A result is of the files that were discovered, or of none."""

import dataclasses
import os

import pytest

from harness.solution.discover import read_solution
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


def test_a_file_that_appears_is_noticed(tmp_path):
    """The candidate could read it, and its record would not name it."""
    (tmp_path / "1_19.py").write_text("import helper")
    solution = read_solution(tmp_path / "1_19.py")
    before = stamp(solution)
    (tmp_path / "helper.py").write_text("x = 1")
    assert not is_unchanged(solution, before)


def test_a_source_that_one_of_two_readings_has_no_memory_for_is_unchanged(solution, monkeypatch):
    """372,900 functions of three characters take 1 GiB: a wrong kernel withdrew, as if somebody had written it."""
    before, refused = stamp(solution), dataclasses.replace(solution, taken_in=(), refused="to read it takes more")
    assert is_unchanged(refused, stamp(refused))
    monkeypatch.setattr("harness.solution.unchanged.read_solution", lambda *_: refused)
    assert is_unchanged(solution, before)
    (_, digest), *_ = solution.taken_in
    other = dataclasses.replace(solution, taken_in=((solution.path, digest),))
    assert not is_unchanged(other, stamp(other))


def test_a_link_that_leads_to_another_file_is_noticed(tmp_path):
    (tmp_path / "1_19.py").write_text("open('table')")
    for name in ("a", "b"):
        (tmp_path / name).write_text("the same")
    (tmp_path / "table").symlink_to("a")
    solution = read_solution(tmp_path / "1_19.py")
    before = stamp(solution)
    (tmp_path / "table").unlink()
    (tmp_path / "table").symlink_to("b")
    assert not is_unchanged(solution, before)


def test_a_file_that_was_written_between_reading_and_the_stamp_is_noticed(solution):
    """And so is one with the times of the other."""
    found = solution.path.stat()
    solution.path.write_text("open('table.TXT')")
    os.utime(solution.path, ns=(found.st_atime_ns, found.st_mtime_ns))
    assert not is_unchanged(solution, stamp(solution))
