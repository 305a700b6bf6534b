"""Text that is not JSON is a ValueError, whatever is wrong with it."""

import pytest

from harness.json_text import parse_json


def test_json_is_read():
    assert parse_json('{"a": [1, null]}') == parse_json(b'{"a": [1, null]}') == {"a": [1, None]}


@pytest.mark.parametrize("text", ["", "{", "nul", b"\xff", "9" * 5000, "[" * 100_000, '{"a":' * 100_000], ids=range(7))
def test_anything_else_is_a_value_error(text):
    with pytest.raises(ValueError):
        parse_json(text)
