"""Tables: what others wrote is text, and of a bounded size."""

import pytest

from kernelbench.views.tables import table


@pytest.mark.parametrize("form", ["terminal", "markdown"])
def test_one_long_cell_does_not_make_all_rows_as_long(form):
    """A name of a megabyte in a run of a thousand results made a gigabyte."""
    text = table(["name"], [["x" * 1_000_000], *[["short"]] * 100], form)
    assert len(text) < 102 * 600 and "…" in text


def test_cells_are_text_and_drive_no_terminal():
    text = table(["a", "b"], [["\x1b[0m", "1e400"], ["", "infinity"]], "terminal", widths=[10, 10])
    assert table(["a"], [[None]], "markdown").count("None") == 0
    assert "\x1b" not in text and r"\x1b[0m" in text and "1e400" in text and "infinity" in text
