"""Logs that several processes of ``kb`` add to at once."""

import multiprocessing
from dataclasses import replace

import pytest

from kernelbench.review.record import LOG, Review, append
from kernelbench.run_files.folder import read_lines
from kernelbench.run_files.log import FullLog, append_line, begin

REVIEW = Review("1/19", "a.py", "0" * 64, "m", "no_issues", "", "An honest loop.", 0.0, "k")


def of_run(folder, writer, number):
    append_line(folder / LOG, {"writer": writer, "number": number})


def of_reviews(folder, writer, number):
    append(folder, replace(REVIEW, model=f"m{writer}", key=f"k{number}"))


def many(add, folder, writer, start):
    start.wait()
    for number in range(400):
        add(folder, writer, number)


@pytest.mark.parametrize("add", [of_run, of_reviews])
def test_no_line_of_another_process_is_cut_off(tmp_path, add):
    """Two `kb review` at once lost lines: one took the end of the log for that which it had seen before."""
    begin(tmp_path / LOG)
    fork = multiprocessing.get_context("fork")
    start = fork.Event()
    writers = [fork.Process(target=many, args=(add, tmp_path, writer, start)) for writer in range(3)]
    for writer in writers:
        writer.start()
    start.set()
    for writer in writers:
        writer.join(60)
    assert [writer.exitcode for writer in writers] == [0] * 3
    lines, rest = read_lines(tmp_path / LOG, 1 << 30)
    assert len({*lines}) == 1200 and not rest


def without_end(folder, monkeypatch, most):
    """Return a log of two lines, the last without its end, of which so many lines are read."""
    for module in ("log", "folder"):
        monkeypatch.setattr(f"kernelbench.run_files.{module}.MOST_LINES", most)
    (folder / LOG).write_text('{"number": 1}\n{"number": 2}')
    return folder / LOG


def test_a_last_line_that_lacks_its_end_only_is_one_of_those_that_are_read(tmp_path, monkeypatch):
    """It was not counted: a log grew by one line more than is read of one, and the run was lost."""
    log = without_end(tmp_path, monkeypatch, most=2)
    with pytest.raises(FullLog, match="it has 2 lines, and no more are read"):
        append_line(log, {"number": 3})
    assert len(read_lines(log, 1 << 30)[0]) == 2


def test_a_last_line_that_gets_its_end_is_counted_once(tmp_path, monkeypatch):
    log = without_end(tmp_path, monkeypatch, most=4)
    for number in (3, 4):
        append_line(log, {"number": number})
    with pytest.raises(FullLog, match="it has 4 lines"):
        append_line(log, {"number": 5})
    assert len(read_lines(log, 1 << 30)[0]) == 4
