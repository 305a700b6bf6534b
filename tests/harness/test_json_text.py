"""Text that is not JSON is a ValueError, whatever is wrong with it."""

import pytest

from harness.json_text import parse_json


def test_json_is_read():
    assert parse_json('{"a": [1, null]}') == parse_json(b'{"a": [1, null]}') == {"a": [1, None]}


def test_what_nests_more_than_a_hundred_deep_is_a_value_error():
    assert parse_json("[" * 100 + "]" * 100)
    with pytest.raises(ValueError, match="more than 100 deep"):
        parse_json('{"a": ' * 101 + "1" + "}" * 101)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"])
def test_bytes_are_utf_8_and_nothing_else(encoding):
    assert parse_json('{"a": "ä"}'.encode("utf-8-sig")) == {"a": "ä"}
    with pytest.raises(ValueError):
        parse_json('{"a": 1}'.encode(encoding))


@pytest.mark.parametrize("text", ["", "{", "nul", b"\xff", "9" * 5000, "[" * 100_000, '{"a":' * 100_000], ids=range(7))
def test_anything_else_is_a_value_error(text):
    with pytest.raises(ValueError):
        parse_json(text)
