"""Tables: what others wrote is text, and of a bounded size."""

import pytest

from kernelbench.views.tables import table


@pytest.mark.parametrize("form", ["terminal", "markdown"])
def test_one_long_cell_does_not_make_all_rows_as_long(form):
    """A name of a megabyte in a run of a thousand results made a gigabyte."""
    text = table(["name"], [["x" * 1_000_000], *[["short"]] * 100], form)
    assert len(text) < 102 * 600 and "…" in text


@pytest.mark.parametrize("form", ["terminal", "markdown"])
def test_two_long_cells_that_differ_at_their_ends_look_different(form):
    """Names of two files were cut to the same text."""
    names = [("d" * 250 + "/") * 4 + end for end in ("one.py", "two.py")]
    one, two = table(["file"], [[name] for name in names], form).splitlines()[2:]
    assert one != two and len(one) < 600


def test_words_for_truth_values_stay_what_they_are():
    """A kernel that was not accepted stood there as accepted: tabulate took bool("False") for True."""
    for widths in (None, [10]):
        text = table(["accepted"], [[False], [True], ["False"]], "terminal", widths=widths)
        assert text.split()[2:] == ["False", "True", "False"]


def test_a_cell_is_wrapped_at_its_width():
    text = table(["a", "b"], [["one two three", "one two three"]], "terminal", widths=[7, None])
    assert [line.rstrip() for line in text.splitlines()[2:]] == ["one two  one two three", "three"]


@pytest.mark.parametrize("form", ["terminal", "markdown"])
def test_a_cell_with_several_lines_makes_no_other_row(form):
    """A name in a log of others was followed by a row that no record had."""
    text = table(["a", "b\nc"], [["relu\n1/20 tanh", "fails\nok"]], form)
    assert len(text.splitlines()) == 3 and "relu 1/20 tanh" in text


def test_cells_are_text_and_drive_no_terminal():
    text = table(["a", "b"], [["\x1b[0m", "1e400"], ["", "infinity"]], "terminal", widths=[10, 10])
    assert table(["a"], [[None]], "markdown").count("None") == 0
    assert "\x1b" not in text and r"\x1b[0m" in text and "1e400" in text and "infinity" in text
