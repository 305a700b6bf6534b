"""Asking a model over HTTP: what is tried again, what is final, what it costs."""

import contextlib
import gzip
import itertools
import json
import os
import socket
import threading
import time
import tracemalloc

import pytest

from kernelbench import bounded_reply
from kernelbench.endpoint import MOST_CALLS, Endpoint, ModelError

HELLO = [{"role": "user", "content": "How are you"}]


@pytest.fixture
def served(stand_in):
    """An endpoint that gives the answers one after the other, the last one for ever."""

    def served(*answers, **keywords):
        server = stand_in.StandIn(lambda request, number: answers[min(number, len(answers)) - 1])
        servers.append(server.__enter__())
        return server, Endpoint("model", server.base_url, **keywords)

    servers = []
    yield served
    for server in servers:
        server.__exit__()


def test_an_answer_with_its_tokens_and_cost(served):
    server, endpoint = served("fine, thank you", prices=(1.0, 2.0))
    done = endpoint.complete(HELLO, endpoint.sampling({"temperature": 0.5}))
    assert (done.text, done.finish_reason, done.tries) == ("fine, thank you", "stop", 1)
    assert (done.prompt_tokens, done.completion_tokens) == (3, 3)
    assert endpoint.cost_usd(3, 3) == pytest.approx(9e-6)
    assert Endpoint("m", "http://x", prices=(1e-200, 0)).cost_usd(3, 3) == 0.0, "records hold no such figure"
    assert server.requests == [{"model": "model", "messages": HELLO, "temperature": 0.5}]


@pytest.mark.parametrize("given", ["as an argument", "in a variable"])
def test_what_is_meant_for_openai_is_sent_to_no_other_address(served, monkeypatch, given):
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Gateway: sesame")
    for name in ("OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, "sesame")
    server, endpoint = served("fine")
    if given == "in a variable":
        monkeypatch.setenv("OPENAI_BASE_URL", endpoint.base_url)
        endpoint = Endpoint("model")
    endpoint.complete(HELLO, {})
    assert server.heads and not any("sesame" in value for head in server.heads for value in head.values())
    assert os.environ["OPENAI_ORG_ID"] == "sesame"


@pytest.mark.parametrize("address", ["http://me:hunter2@host/v1", "http:////me:hunter2@host/v1"])
@pytest.mark.parametrize("given", ["as an argument", "in a variable"])
def test_an_address_with_a_password_is_refused(monkeypatch, address, given):
    """It was kept in the configuration of the run."""
    if given == "in a variable":
        monkeypatch.setenv("OPENAI_BASE_URL", address)
    with pytest.raises(ModelError, match="put a key into a variable instead") as caught:
        Endpoint("model", None if given == "in a variable" else address)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("address", ["\0", "http://host/\x01"])
def test_what_is_no_address_is_told_as_such(address):
    with pytest.raises(ModelError, match="is no address of an endpoint"):
        Endpoint("model", address)


def test_without_prices_the_cost_is_unknown(served):
    _, endpoint = served("fine")
    done = endpoint.complete(HELLO, {})
    assert endpoint.cost_usd(done.prompt_tokens, done.completion_tokens) is None


def test_fields_of_the_user_win_over_those_of_the_solver(served):
    _, endpoint = served("fine", fields={"temperature": None, "max_tokens": 10})
    assert endpoint.sampling({"temperature": 0.5, "top_p": 0.9}) == {"max_tokens": 10, "top_p": 0.9}


@pytest.mark.parametrize("stream", [False, True])
def test_what_passes_is_tried_again(served, stand_in, stream):
    faults = [stand_in.Fault(500, "a moment"), stand_in.Fault(body="cut"), stand_in.Fault(body="garbage")]
    server, endpoint = served(*faults, "fine, thank you", stream=stream)
    done = endpoint.complete(HELLO, {})
    assert (done.text, done.tries, len(server.requests)) == ("fine, thank you", 4, 4)
    assert done.completion_tokens == 3


def tool_call(arguments):
    return {"id": "1", "type": "function", "function": {"name": "a", "arguments": arguments}}


@pytest.mark.parametrize(
    "message, finish_reason",
    [
        ({"content": 5}, "stop"),
        ({"content": ["fine"]}, "stop"),
        ({"content": "fine"}, 7),
        ({"content": "a" * (1 << 20) + "a"}, "stop"),
        ({"tool_calls": [{"id": "1", "type": "function", "function": {"name": 3, "arguments": "{}"}}]}, "tool_calls"),
        ({"tool_calls": [{"id": "1", "type": "function", "function": {"name": "a", "arguments": {}}}]}, "tool_calls"),
        ({"content": "", "tool_calls": [tool_call("a" * (1 << 19)), tool_call("a" * (1 << 19))]}, "tool_calls"),
    ],
)
def test_an_answer_that_cannot_be_kept_is_asked_for_again(served, stand_in, message, finish_reason):
    """Content 5 was kept as it came, and the run could not be resumed with it."""
    body = {"choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish_reason}]}
    _, endpoint = served(stand_in.Fault(body=body), "fine, thank you")
    done = endpoint.complete(HELLO, {})
    assert (done.text, done.tries) == ("fine, thank you", 2)


@pytest.mark.parametrize("stream", [False, True])
def test_of_tool_calls_the_first_are_kept(served, stand_in, stream):
    """A million of them, which nobody had offered, made a log that was too large to continue the run."""
    called = [tool_call("{}") | {"index": index} for index in range(MOST_CALLS + 5)]
    message = {"role": "assistant", "content": "", "tool_calls": called}
    body = {"choices": [{"index": 0, "delta" if stream else "message": message, "finish_reason": "tool_calls"}]}
    _, endpoint = served(stand_in.Fault(body=body), stream=stream)
    assert len(endpoint.complete(HELLO, {}).tool_calls) == MOST_CALLS


def test_halves_of_characters_are_joined_or_marked(served, stand_in):
    content = "whole \ud83d\ude00 half \ud800."
    body = {"choices": [{"index": 0, "message": {"content": content}, "finish_reason": "stop"}]}
    _, endpoint = served(stand_in.Fault(body=body))
    assert endpoint.complete(HELLO, {}).text == "whole \U0001f600 half \ufffd."


def call_of(**call):
    return {"tool_calls": [{"index": 0, "id": "1", "type": "function", **call}]}


@pytest.mark.parametrize(
    "delta, finish_reason",
    [
        (None, "stop"),
        ({"content": 5}, "stop"),
        ({"content": [[]]}, "stop"),
        ({"content": "fine"}, 7),
        (call_of(function={"name": 1, "arguments": "{}"}), "tool_calls"),
        (call_of(index=None, function={"name": "a", "arguments": "{}"}), "tool_calls"),
        (call_of(index="a", function={"name": "a", "arguments": "{}"}), "tool_calls"),
    ],
)
def test_a_streamed_piece_that_cannot_be_kept_ends_the_answer(served, stand_in, delta, finish_reason):
    body = {"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]}
    _, endpoint = served(stand_in.Fault(body=body), "fine, thank you", stream=True)
    done = endpoint.complete(HELLO, {})
    assert (done.text, done.tries) == ("fine, thank you", 2)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("field", ["_fields_set", "_BaseModel__cls", "self", "values"])
def test_fields_that_the_package_takes_for_arguments_are_the_endpoints_fault(served, stand_in, stream, field):
    """They ended `kb review` with a traceback."""
    message = {"role": "assistant", "content": "fine", field: 1}
    choice = {"index": 0, "delta" if stream else "message": message, "finish_reason": "stop", field: 1}
    _, endpoint = served(stand_in.Fault(body={"choices": [choice], field: 1}), "fine, thank you", stream=stream)
    done = endpoint.complete(HELLO, {})
    assert done.text in ("fine", "fine, thank you")


def test_an_error_in_a_stream_is_told_when_patience_ends(served, stand_in):
    body = {"error": {"message": "the model is overloaded", "type": "server_error"}}
    _, endpoint = served(stand_in.Fault(body=body), stream=True)
    endpoint.tries = 1
    with pytest.raises(ModelError, match="an error in the middle of its answer: .*overloaded"):
        endpoint.complete(HELLO, {})


@pytest.mark.parametrize("end", ["\n\n", "\r\n\r\n"])
def test_a_stream_may_hold_what_ends_a_line_of_text(raw, end):
    """Each of eight answers with U+2028 was cut there, paid for and lost."""
    content = "a\u2028b\u2029c\x85d"
    pieces = [{"choices": [{"index": 0, "delta": {"content": content}, "finish_reason": None}]}]
    pieces.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    body = "".join(f"data: {json.dumps(piece, ensure_ascii=False)}{end}" for piece in pieces) + f"data: [DONE]{end}"
    done = Endpoint("model", raw(lambda handler: handler.wfile.write(body.encode())), stream=True).complete(HELLO, {})
    assert (done.text, done.tries) == (content, 1)


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_lines_of_a_stream_are_the_same_wherever_it_is_cut(size):
    body = "first \u2028 é\r\n\nsecond\rthird".encode()
    pieces = [body[place : place + size] for place in range(0, len(body), size)]
    assert [*filter(None, bounded_reply.lines(pieces))] == ["first \u2028 é", "second", "third"]


@pytest.mark.parametrize("status", [400, 500])
def test_of_a_long_error_the_begin_is_told(served, stand_in, status):
    """Three million characters of one were in a message, and in the failures of a run."""
    _, endpoint = served(stand_in.Fault(status, "so " * 1_000_000))
    endpoint.tries = 1
    with pytest.raises(ModelError, match="so so so .* characters") as caught:
        endpoint.complete(HELLO, {})
    assert len(str(caught.value)) < 3000


def test_an_answer_nested_too_deep_is_asked_for_again(served, stand_in):
    content = []
    for _ in range(900):
        content = [content]
    body = {"choices": [{"index": 0, "message": {"content": content}, "finish_reason": "stop"}]}
    _, endpoint = served(stand_in.Fault(body=body), "fine, thank you")
    assert endpoint.complete(HELLO, {}).tries == 2


@pytest.mark.parametrize("tokens", ["many", -3, 10**30, None])
def test_counts_that_are_none_are_unknown(served, stand_in, tokens):
    choice = {"index": 0, "message": {"role": "assistant", "content": "fine"}, "finish_reason": "stop"}
    usage = {"prompt_tokens": tokens, "completion_tokens": 1, "total_tokens": 1}
    _, endpoint = served(stand_in.Fault(body={"choices": [choice], "usage": usage}), prices=(1.0, 2.0))
    done = endpoint.complete(HELLO, {})
    assert (done.prompt_tokens, done.completion_tokens) == (None, 1)
    assert endpoint.cost_usd(done.prompt_tokens, done.completion_tokens) is None


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("asked", ["1000000000", "inf", "Fri, 31 Dec 9998 23:59:59 GMT"])
def test_nobody_waits_for_days(served, stand_in, status, asked):
    server, endpoint = served(stand_in.Fault(status, "come back later", retry_after=asked), "fine")
    with pytest.raises(ModelError, match="asks to wait .* at most 600 s.*come back later"):
        endpoint.complete(HELLO, {})
    assert len(server.requests) == 1


@pytest.mark.parametrize("asked", ["nan", "soon", "Mon, 01 Jan 0001 00:00:00 +2359", "Fri, 99 Dec 2026 23:59:59 GMT"])
def test_a_wait_that_is_none_is_not_kept(served, stand_in, asked):
    _, endpoint = served(stand_in.Fault(503, "slowly", retry_after=asked), "fine")
    assert endpoint.complete(HELLO, {}).tries == 2


def test_a_rate_limit_is_kept(served, stand_in):
    server, endpoint = served(stand_in.Fault(429, "slowly", retry_after="1.2"), "fine")
    begin = time.monotonic()
    assert endpoint.complete(HELLO, {}).tries == 2
    assert time.monotonic() - begin >= 1.2


@pytest.mark.parametrize(
    "fault, message",
    [
        (dict(status=401, message="no such key"), "refuses the key in OPENAI_API_KEY.*no such key"),
        (dict(status=404, message="what model?"), "has no model 'model'.*what model"),
        (dict(status=400, message="context too long"), "refuses the request .HTTP 400.*context too long"),
        (dict(status=429, message="pay first", code="insufficient_quota"), "quota is used up"),
    ],
)
def test_what_will_not_pass_is_an_error_at_once(served, stand_in, fault, message):
    server, endpoint = served(stand_in.Fault(**fault))
    with pytest.raises(ModelError, match=message):
        endpoint.complete(HELLO, {})
    assert len(server.requests) == 1


def test_patience_has_an_end(served, stand_in, monkeypatch):
    monkeypatch.setattr("kernelbench.endpoint._TRIES", 2)
    server, endpoint = served(stand_in.Fault(500, "never"))
    with pytest.raises(ModelError, match="no answer in 2 tries.*never"):
        endpoint.complete(HELLO, {})
    assert len(server.requests) == 2


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("lost", ["cut", "too late", "cut and too late"])
def test_answers_that_were_generated_and_lost_are_spent(served, stand_in, stream, lost):
    """Only the last of up to eight answers that a provider bills was counted."""
    faults = [stand_in.Fault(body="cut")] * ("cut" in lost) + [stand_in.Fault(after_s=1.5)] * ("late" in lost)
    _, endpoint = served(*faults, "fine, thank you", stream=stream, timeout_s=0.5)
    done = endpoint.complete(HELLO, {})
    assert (done.prompt_tokens, done.completion_tokens, len(done.lost)) == (3, 3, len(faults))
    assert done.spent_tokens == (3 + 3 * len(faults), 3 + 3 * len(faults)), "each lost one counts as much as the answer"


@pytest.mark.parametrize("stream", [False, True])
def test_of_an_answer_above_its_limit_the_usage_that_was_told_is_spent(served, stand_in, stream):
    message = {"role": "assistant", "content": "a" * (1 << 20) + "a"}
    choice = {"index": 0, "delta" if stream else "message": message, "finish_reason": "stop"}
    usage = {"prompt_tokens": 4, "completion_tokens": 300_000}
    _, endpoint = served(stand_in.Fault(body={"choices": [choice], "usage": usage}), "fine, thank you", stream=stream)
    assert endpoint.complete(HELLO, {}).spent_tokens == (3 + 4, 3 + 300_000)


def test_an_error_after_a_piece_of_an_answer_loses_it_and_one_before_does_not(served, stand_in, raw):
    error = {"error": {"message": "the model is overloaded"}}
    _, endpoint = served(stand_in.Fault(body=error), "fine, thank you", stream=True)
    assert not endpoint.complete(HELLO, {}).lost
    piece = {"choices": [{"index": 0, "delta": {"content": "fi"}, "finish_reason": None}]}
    body = f"data: {json.dumps(piece)}\n\ndata: {json.dumps(error)}\n\n".encode()
    endpoint = Endpoint("model", raw(lambda handler: handler.wfile.write(body)), stream=True)
    endpoint.tries = 2
    with pytest.raises(ModelError, match="gave no answer in 2 tries") as caught:
        endpoint.complete(HELLO, {})
    assert caught.value.lost_tries == 2


@pytest.mark.parametrize("stream", [False, True])
def test_what_an_endpoint_refuses_is_not_spent(served, stand_in, stream):
    faults = [stand_in.Fault(500, "a moment"), stand_in.Fault(429, "slowly"), stand_in.Fault(body="garbage")]
    _, endpoint = served(*faults, "fine, thank you", stream=stream)
    done = endpoint.complete(HELLO, {})
    assert done.tries == 4 and not done.lost and done.spent_tokens == (3, 3)


def test_tokens_that_an_answer_does_not_tell_are_unknown_with_lost_ones_too(served, stand_in):
    choice = {"index": 0, "message": {"role": "assistant", "content": "fine"}, "finish_reason": "stop"}
    _, endpoint = served(stand_in.Fault(body="cut"), stand_in.Fault(body={"choices": [choice]}))
    assert endpoint.complete(HELLO, {}).spent_tokens == (None, None)


def test_a_request_ends_with_as_many_lost_answers_as_may_be_billed(served, stand_in):
    server, endpoint = served(stand_in.Fault(500, "a moment"), stand_in.Fault(body="cut"))
    with pytest.raises(ModelError, match="gave no answer in 3 tries") as caught:
        endpoint.complete(HELLO, {}, most_billed=2)
    assert len(server.requests) == 3 and caught.value.lost_tries == 2


def test_a_refusal_tells_how_many_answers_were_lost_before_it(served, stand_in):
    _, endpoint = served(stand_in.Fault(body="cut"), stand_in.Fault(400, "context too long"))
    with pytest.raises(ModelError, match="refuses the request") as caught:
        endpoint.complete(HELLO, {})
    assert caught.value.lost_tries == 1


def test_nobody_listens(monkeypatch):
    monkeypatch.setattr("kernelbench.endpoint._TRIES", 1)
    with pytest.raises(ModelError, match="http://127.0.0.1:9/v1/ gave no answer") as caught:
        Endpoint("model", "http://127.0.0.1:9/v1").complete(HELLO, {})
    assert caught.value.lost_tries == 0


def test_the_key_comes_from_the_environment(served, monkeypatch):
    monkeypatch.setenv("MY_KEY", "secret")
    server, endpoint = served("fine", key_variable="MY_KEY")
    endpoint.complete(HELLO, {})
    assert server.keys == ["secret"]
    monkeypatch.delenv("MY_KEY")
    with pytest.raises(ModelError, match="MY_KEY is not set"):
        Endpoint("model", key_variable="MY_KEY")


@pytest.fixture
def raw(answering):
    """An endpoint that answers with what is written, and these headers."""
    return lambda write, **headers: answering(write, content_type="application/json", **headers) + "/v1"


@pytest.mark.parametrize("stream", [False, True])
def test_an_endless_answer_is_not_kept(raw, monkeypatch, stream):
    for limit in ("MOST_BYTES", "MOST_WHOLE_BYTES"):
        monkeypatch.setattr(f"kernelbench.bounded_reply.{limit}", 1 << 20)

    def write(handler):
        while True:
            handler.wfile.write(b" " * 65536)

    with pytest.raises(ModelError, match="its reply has more than 1,048,576 bytes"):
        Endpoint("model", raw(write), stream=stream).complete(HELLO, {})


@pytest.mark.slow
@pytest.mark.parametrize("stream", [False, True])
def test_a_reply_of_many_small_parts_takes_little_memory(raw, stream):
    """Objects of the package for each of them took 600 times the size of the reply."""
    body = b'{"choices": [' + b"{}," * 1_000_000 + b"{}]}"

    def write(handler):
        handler.wfile.write(b"data: " + body + b"\n\n" if stream else body)

    endpoint = Endpoint("model", raw(write), stream=stream)
    endpoint.tries = 1
    tracemalloc.start()
    with pytest.raises(ModelError, match="_Garbled"):
        endpoint.complete(HELLO, {})
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 100 * len(body)


def test_tool_calls_that_nobody_makes_take_little_memory_while_they_stream(raw):
    """Each was kept until the end: 64 MiB of them took 1.3 GB."""
    piece = 'data: {"choices": [{"delta": {"tool_calls": [{"index": %d}]}}]}\n\n'
    end = 'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
    body = ("".join(piece % index for index in range(20_000)) + end).encode()

    def write(handler):
        handler.wfile.write(body)

    endpoint = Endpoint("model", raw(write), stream=True)
    tracemalloc.start()
    assert len(endpoint.complete(HELLO, {}).tool_calls) == MOST_CALLS
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 4_000_000


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_that_comes_byte_by_byte_has_an_end(raw, stream):
    def write(handler):
        while True:
            handler.wfile.write(b" ")
            handler.wfile.flush()
            time.sleep(0.05)

    with pytest.raises(ModelError, match="its reply took longer than 2 s"):
        Endpoint("model", raw(write), timeout_s=0.5, stream=stream).complete(HELLO, {})


@pytest.mark.parametrize(
    "begin, more",
    [
        ("HTTP/1.1 200 OK\r\nX-Long: ", "x"),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5;", "x"),
        ("", "HTTP/1.1 103 Early Hints\r\n\r\n"),
    ],
    ids=["header", "extension of a chunk", "informational answers"],
)
def test_an_answer_whose_body_never_begins_has_an_end(serve_bytes, begin, more):
    address = serve_bytes(itertools.chain([begin.encode()], itertools.repeat(more.encode())))
    with pytest.raises(ModelError, match="its reply took longer than 2 s"):
        Endpoint("model", address, timeout_s=0.5).complete(HELLO, {})


@pytest.fixture
def serve_bytes():
    """Serve these pieces, one each 50 ms, whatever is asked."""
    ended, servers = threading.Event(), []

    def serve(pieces):
        server = socket.create_server(("127.0.0.1", 0))
        servers.append(server)

        def answer():
            with contextlib.suppress(OSError), server.accept()[0] as connection:
                connection.recv(1 << 16)
                for piece in pieces:
                    connection.sendall(piece)
                    if ended.wait(0.05):
                        return

        threading.Thread(target=answer, daemon=True).start()
        return f"http://127.0.0.1:{server.getsockname()[1]}/v1"

    yield serve
    ended.set()
    for server in servers:
        server.close()


def test_prompts_go_to_no_other_address_than_the_endpoints(serve_bytes):
    asked = []

    def pieces():
        asked.append("elsewhere")
        yield b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"

    elsewhere = serve_bytes(pieces())
    head = f"HTTP/1.1 307 Temporary Redirect\r\nLocation: {elsewhere}\r\ncontent-length: 0\r\n\r\n"
    with pytest.raises(ModelError, match="HTTP 307"):
        Endpoint("model", serve_bytes([head.encode()])).complete(HELLO, {})
    assert not asked


@pytest.mark.timeout(60)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", ["punycode", "rot13", "zlib", "utf-16"])
def test_a_reply_is_read_as_utf_8_whatever_it_names(answering, name, stream):
    """A decoder of Python's takes the square of its text: a reply within the limits was read for hours."""
    message = {"role": "assistant", "content": "é" * 200_000}
    chosen = {"choices": [{"index": 0, "delta" if stream else "message": message, "finish_reason": "stop"}]}
    body = json.dumps(chosen, ensure_ascii=False).encode()
    kind = "text/event-stream" if stream else "application/json"
    url = answering(
        lambda handler: handler.wfile.write(b"data: " + body + b"\n\n" if stream else body),
        content_type=f"{kind}; charset={name}",
    )
    assert Endpoint("model", url + "/v1", stream=stream).complete(HELLO, {}).text == message["content"]


def test_an_answer_that_is_compressed_unasked_is_not_unpacked(raw):
    def write(handler):
        handler.wfile.write(gzip.compress(b" " * (1 << 20)))

    with pytest.raises(ModelError, match="its reply is compressed"):
        Endpoint("model", raw(write, content_encoding="gzip")).complete(HELLO, {})
