"""Links in a run of others lead nowhere, by whatever way a person names what lies there."""

import pytest

from kernelbench.run_files.folder import run_left_by_a_link
from kernelbench.run_files.log import write_named


@pytest.fixture
def theirs(tmp_path):
    """A run of others, in which a link leads to the file ``ours``."""
    (tmp_path / "theirs" / "sub").mkdir(parents=True)
    for name in ("config.json", "results.jsonl"):
        (tmp_path / "theirs" / name).touch()
    (tmp_path / "ours").write_text("before")
    (tmp_path / "theirs/sub/out.html").symlink_to(tmp_path / "ours")
    return tmp_path / "theirs"


@pytest.mark.parametrize(
    ("short", "path"),
    [("theirs/sub", "short/out.html"), ("theirs", "short/sub/out.html"), (".", "short/theirs/sub/out.html")],
)
def test_a_link_of_ones_own_leads_into_a_run_and_not_out_of_it(theirs, tmp_path, short, path):
    """By a shortcut to a folder of the run a file of ours was overwritten: only the names of a path were looked at."""
    (tmp_path / "short").symlink_to(short)
    assert run_left_by_a_link(tmp_path / path)
    write_named(tmp_path / path, "text")
    assert (tmp_path / "ours").read_text() == "before"
    written = theirs / "sub/out.html"
    assert not written.is_symlink() and written.read_text() == "text"


def test_a_link_of_ones_own_to_a_file_in_a_run_or_to_no_run_is_written_through(theirs, tmp_path):
    (tmp_path / "short").symlink_to("theirs/sub")
    assert run_left_by_a_link(tmp_path / "short/new.html") is None
    write_named(tmp_path / "short/new.html", "text")
    assert (theirs / "sub/new.html").read_text() == "text" and (tmp_path / "short").is_symlink()
    (tmp_path / "elsewhere").symlink_to(tmp_path / "ours")
    write_named(tmp_path / "elsewhere", "text")
    assert (tmp_path / "ours").read_text() == "text"
