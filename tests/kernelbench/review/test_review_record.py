"""The log of reviews: read within limits, and written to nowhere else."""

import os

import pytest
from logs import NO_LOGS, no_log

from kernelbench.review.record import LOG, Review, ReviewError, append, load

REVIEW = Review("1/19", "a.py", "0" * 64, "m", "no_issues", "", "An honest loop.", 0.0, "k")


def test_what_is_appended_is_loaded(tmp_path):
    assert load(tmp_path) == []
    append(tmp_path, REVIEW)
    append(tmp_path, REVIEW)
    assert load(tmp_path) == [REVIEW, REVIEW]


@pytest.mark.parametrize("kind", NO_LOGS)
def test_what_is_no_plain_file_is_refused_at_once(tmp_path, kind):
    no_log(tmp_path / LOG, kind)
    with pytest.raises(ReviewError, match=f"{LOG} cannot be read: it is (not a plain file|too large)"):
        load(tmp_path)


def test_a_review_that_was_cut_off_is_left_out_and_makes_room(tmp_path):
    append(tmp_path, REVIEW)
    with (tmp_path / LOG).open("a") as log:
        log.write('{"problem": "1/')
    assert load(tmp_path) == [REVIEW]
    append(tmp_path, REVIEW)
    assert load(tmp_path) == [REVIEW, REVIEW] and (tmp_path / LOG).read_bytes().endswith(b"}\n")


@pytest.mark.parametrize("limit", ["kernelbench.review.record._MOST_BYTES", "kernelbench.review.record.MOST_LINES"])
def test_no_more_is_written_than_is_read(tmp_path, monkeypatch, limit):
    append(tmp_path, REVIEW)
    before = (tmp_path / LOG).read_bytes()
    monkeypatch.setattr(limit, 1 if limit.endswith("LINES") else 2 * len(before) - 1)
    with pytest.raises(ReviewError, match=f"{LOG} cannot be written: no more is read of one; move it elsewhere"):
        append(tmp_path, REVIEW)
    assert (tmp_path / LOG).read_bytes() == before and load(tmp_path) == [REVIEW]


@pytest.mark.parametrize("is_there", [True, False])
def test_nothing_is_written_through_a_link(tmp_path, is_there):
    run, elsewhere = tmp_path / "run", tmp_path / "notes"
    run.mkdir()
    if is_there:
        elsewhere.write_text("")
    (run / LOG).symlink_to(elsewhere)
    with pytest.raises(ReviewError, match=f"{LOG} cannot be written: it is a link"):
        append(run, REVIEW)
    assert elsewhere.exists() == is_there and not (is_there and elsewhere.read_text())


def test_nothing_is_written_into_a_pipe(tmp_path):
    os.mkfifo(tmp_path / LOG)
    reader = os.open(tmp_path / LOG, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with pytest.raises(ReviewError, match="not a plain file"):
            append(tmp_path, REVIEW)
    finally:
        os.close(reader)
    with pytest.raises(ReviewError, match="cannot be written"):
        append(tmp_path, REVIEW)


def test_a_last_review_that_lacks_its_end_only_is_one_of_those_that_are_read(tmp_path, monkeypatch):
    """It was not counted, and with one more no review of the run could be read."""
    for _ in range(2):
        append(tmp_path, REVIEW)
    os.truncate(tmp_path / LOG, (tmp_path / LOG).stat().st_size - 1)
    for module in ("review.record", "run_files.folder"):
        monkeypatch.setattr(f"kernelbench.{module}.MOST_LINES", 2)
    with pytest.raises(ReviewError, match=f"{LOG} cannot be written: no more is read of one"):
        append(tmp_path, REVIEW)
    assert load(tmp_path) == [REVIEW, REVIEW]
