"""Asking a model over HTTP: what is tried again, what is final, what it costs."""

import time

import pytest

from kernelbench.endpoint import Endpoint, ModelError

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
    assert server.requests == [{"model": "model", "messages": HELLO, "temperature": 0.5}]


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


def test_nobody_listens(monkeypatch):
    monkeypatch.setattr("kernelbench.endpoint._TRIES", 1)
    with pytest.raises(ModelError, match="http://127.0.0.1:9/v1/ gave no answer"):
        Endpoint("model", "http://127.0.0.1:9/v1").complete(HELLO, {})


def test_the_key_comes_from_the_environment(served, monkeypatch):
    monkeypatch.setenv("MY_KEY", "secret")
    server, endpoint = served("fine", key_variable="MY_KEY")
    endpoint.complete(HELLO, {})
    assert server.keys == ["secret"]
    monkeypatch.delenv("MY_KEY")
    with pytest.raises(ModelError, match="MY_KEY is not set"):
        Endpoint("model", key_variable="MY_KEY")
