"""Messages between processes survive any cut, and garbage is recognised."""

import fcntl
import json
import resource
import socket
import struct

import pytest
from linear_time import MEGABYTE, in_linear_time

from harness.process import protocol


def framed(body):
    return struct.pack("!I", len(body)) + body


@pytest.fixture
def ends():
    a, b = socket.socketpair()
    yield a, b
    a.close()
    b.close()


def test_messages_arrive_in_order(ends):
    protocol.send(ends[0], {"n": 1})
    protocol.send(ends[0], {"n": 2, "text": "ä" * 7_000})
    assert protocol.receive(ends[1]) == {"n": 1}
    assert protocol.receive(ends[1])["text"] == "ä" * 7_000


def test_a_message_may_arrive_byte_by_byte():
    reader = protocol.Reader()
    data = framed(json.dumps({"a": [1, 2]}).encode())
    for byte in data[:-1]:
        reader.feed(bytes([byte]))
        assert reader.message() is None
    reader.feed(data[-1:])
    assert reader.message() == {"a": [1, 2]}


def test_commas_and_brackets_in_a_text_are_no_values():
    """A source has more of them than a message may have values."""
    reader, source = protocol.Reader(), 'f({a, "b\\"}, [c]);\\\n' * protocol.MAX_VALUES
    reader.feed(framed(json.dumps({"sources": [source]}).encode()))
    assert reader.message() == {"sources": [source]}


@pytest.mark.parametrize("text", ['\\"', '""', "\\\\", '\\'])
def test_texts_without_an_end_are_looked_at_in_linear_time(text):
    """A pattern looked for the end of each, for ever."""
    reader, commas = protocol.Reader(), "," * (protocol.MAX_VALUES + 1)
    reader.feed(framed(f'{{"a": [{commas}"{text * MEGABYTE}'.encode()))
    with in_linear_time(), pytest.raises(protocol.Garbled):
        reader.message()


def test_a_closed_end_is_told(ends):
    ends[0].sendall(b"\x00\x00")
    ends[0].close()
    with pytest.raises(protocol.Closed):
        protocol.receive(ends[1])


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"])
def test_values_that_another_encoding_hides_are_garbled(encoding):
    """A mark between zeros is none of its text's end: behind it 2.7 million lists were read."""
    reader, lists = protocol.Reader(), "[]," * (2 * protocol.MAX_VALUES)
    reader.feed(framed(f'{{"a": "\\"", "b": [{lists}[]]}}'.encode(encoding)))
    with pytest.raises(protocol.Garbled):
        reader.message()


@pytest.mark.parametrize(
    "data",
    [
        framed(b"not json"),
        framed(b"[1, 2]"),
        framed(b"\xff\xfe"),
        framed(b"[" * 100_000),
        framed(b'{"a": [' + b"{}," * protocol.MAX_VALUES + b"{}]}"),
        struct.pack("!I", protocol.MAX_BYTES + 1) + b"x",
    ],
    ids=["text", "no object", "no utf-8", "deep", "many values", "long"],
)
def test_garbage_is_garbled(data):
    reader = protocol.Reader()
    with pytest.raises(protocol.Garbled):
        reader.feed(data)
        reader.message()


def test_what_arrives_is_noticed_by_any_descriptor(ends):
    """``select`` takes none above 1023, which a service with a thousand clients has."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard <= 1100:
        pytest.skip("this user may not have so many descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 1100), hard))
    high = socket.socket(fileno=fcntl.fcntl(ends[1].fileno(), fcntl.F_DUPFD, 1050))
    assert not protocol.has_more(high, 0.0)
    protocol.send(ends[0], {"n": 1})
    assert protocol.has_more(high, 5.0) and protocol.receive(high) == {"n": 1}
    high.close()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
