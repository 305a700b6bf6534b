"""The service as clients see it: the drop-in for ``reward``, who is refused and with which words."""

import asyncio
import json
import os
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest
from serving import GOOD, Serving, resident_bytes

import kernelbench
from harness.problem.module import ProblemError
from kernelbench import EvaluationError, Evaluator
from kernelbench.integrations import tasks
from kernelbench.service.app import MAX_BODY_BYTES
from kernelbench.service.server import StoreError, _make_private

# A second instead of half a minute for slow clients.
QUICK = "from kernelbench.service import app, server; app.BODY_S = 1.0; server._HEAD_S = 1.0"
WRONG = GOOD.replace("clamp(min=0)", "neg()")


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    serving = Serving(tmp_path_factory.mktemp("service"), "--queue", "20", code=QUICK)
    yield serving
    assert serving.end() == 0


@pytest.fixture
def judge(service):
    with Evaluator(service.url, service.token, patience_s=30) as evaluator:
        yield evaluator


def post(service, path, content, token=None, **headers):
    """Status and error code of a raw request."""
    headers = {"Authorization": f"Bearer {token or service.token}", **headers}
    response = httpx2.post(service.url + path, content=content, headers=headers, timeout=30)
    return response.status_code, response.json().get("error", {}).get("code")


def body(**fields):
    return json.dumps({"id": "0" * 32, "problem": "1/19", "source": "nonsense(", "kind": "py", **fields})


@pytest.mark.slow
def test_an_adapter_has_the_service_judge(service, monkeypatch):
    monkeypatch.setenv("KERNELBENCH_SERVICE", service.url)
    monkeypatch.setenv("KERNELBENCH_TOKEN", service.token)
    answer = f"```python\n{WRONG}```"
    grade = tasks.grade_answer("1/19", answer, device="cpu", timeout_s=20)
    assert (grade.label, grade.value) == ("wrong_value", 0) and "first at" in grade.feedback
    metrics = httpx2.get(service.url + "/v1/metrics", headers={"Authorization": f"Bearer {service.token}"}).text
    assert 'kb_answers_total{status="wrong_value"}' in metrics, "it was judged here"


@pytest.mark.slow
def test_a_reward_is_what_the_function_gives(judge):
    found = judge.reward("1/19", GOOD, timeout_s=60)
    assert found.label == "ok" and found.value >= 0.3 and found.result.device["type"] == "cpu"
    local = kernelbench.reward("1/19", "nonsense(", device="cpu")
    remote = judge.reward("1/19", "nonsense(", device="cpu")
    assert (local.label, local.value, local.message) == (remote.label, remote.value, remote.message)
    assert asyncio.run(judge.areward("1/19", WRONG, timeout_s=60)).label == "wrong_value"


@pytest.mark.slow
def test_a_batch_keeps_its_order_and_bad_sources_are_labels(judge):
    batch = [("1/19", WRONG), {"problem": "1/19", "source": "not C++", "kind": "cpp"}, ("1/19", None), ("1/23", GOOD)]
    expected = ["wrong_value", "build_error", "build_error", "wrong_value"]
    assert [one.label for one in judge.rewards(batch, timeout_s=60)] == expected
    found = asyncio.run(judge.arewards([("1/19", GOOD + "# \ud800"), ("1/19", "#" * (1 << 21))]))
    assert [one.label for one in found] == ["build_error"] * 2 and "lone surrogate" in found[0].message
    assert judge.rewards([]) == []


@pytest.mark.slow
def test_mistakes_are_the_exceptions_of_the_function(judge):
    with pytest.raises(ValueError, match="no problem matches '9/99'"):
        judge.reward("9/99", GOOD)
    with pytest.raises(ProblemError, match="no workload 'huge'"):
        judge.reward("1/19", GOOD, workload="huge")
    with pytest.raises(ValueError, match="candidate 1: 'so' is no kind"):
        judge.rewards([("1/19", GOOD), {"problem": "1/19", "source": GOOD, "kind": "so"}])
    with pytest.raises(ValueError, match="precision must be one of"):
        judge.reward("1/19", GOOD, precision="fp8")
    with pytest.raises(ValueError, match="evaluates on cpu, not on cuda"):
        judge.reward("1/19", GOOD, device="cuda:0")
    with pytest.raises(ValueError, match="timeout_s must be at most"):
        judge.reward("1/19", GOOD, timeout_s=1e9)
    with pytest.raises(ValueError, match="conditions are an object with the keys"):
        judge.reward("1/19", GOOD, address="ray://elsewhere")
    with pytest.raises(EvaluationError, match="needs a GPU"):
        judge.reward("1/19", "", kind="cu")


def test_without_a_token_nobody_gets_in(service, monkeypatch):
    for path in ("/v1/evaluations", "/v1/answers"):
        assert post(service, path, body(), token="0" * 64) == (401, "no_access")
    assert httpx2.get(service.url + "/v1/metrics").status_code == 401
    assert httpx2.get(service.url + "/v1/health").json() == {"kernelbench": kernelbench.__version__}
    with pytest.raises(PermissionError, match="Authorization"):
        Evaluator(service.url, "0" * 64).reward("1/19", GOOD)
    monkeypatch.delenv("KERNELBENCH_TOKEN", raising=False)
    with pytest.raises(ValueError, match="needs a token"):
        Evaluator(service.url)


@pytest.mark.parametrize(
    ("path", "content", "expected"),
    [
        ("/v1/evaluations", b"{", (400, "no_json")),
        ("/v1/evaluations", b"\xff\xfe", (400, "no_json")),
        ("/v1/evaluations", b"[" * 100_000, (400, "no_json")),
        ("/v1/evaluations", b"[]", (422, "bad_submission")),
        ("/v1/evaluations", body(more=1), (422, "bad_submission")),
        ("/v1/evaluations", body(problem=19), (422, "bad_submission")),
        ("/v1/evaluations", body(problem="9/99"), (422, "unknown_problem")),
        ("/v1/evaluations", body(problem="level1"), (422, "bad_submission")),
        ("/v1/evaluations", body(kind="so"), (422, "bad_submission")),
        ("/v1/evaluations", body(id="../x"), (422, "bad_id")),
        ("/v1/evaluations", body(priority=10), (422, "bad_priority")),
        ("/v1/evaluations", body(conditions={"memory_bytes": 1}), (422, "bad_conditions")),
        ("/v1/evaluations", body(conditions={"timeout_s": None}), (422, "bad_conditions")),
        ("/v1/evaluations", body(conditions={"cv_target": None}), (422, "bad_conditions")),
        ("/v1/evaluations", body(conditions={"cv_target": [1]}), (422, "bad_conditions")),
        ("/v1/evaluations", body(conditions={"baselines": None}), (422, "bad_conditions")),
        ("/v1/evaluations", body(conditions={"baselines": ["eager", "compile", "compile"]}), (422, "bad_conditions")),
        ("/v1/evaluations", body(conditions={"baselines": {"eager": 1}}), (422, "bad_conditions")),
        ("/v1/evaluations", body(conditions={"clock_mhz": "x"}), (422, "bad_conditions")),
        ("/v1/evaluations", body(conditions={"workload": ["small"]}), (422, "no_workload")),
        ("/v1/evaluations", body(conditions={"workload": "huge"}), (422, "no_workload")),
        ("/v1/evaluations", b"x" * (MAX_BODY_BYTES + 1), (413, "too_large")),
        ("/v1/answers", b'{"ids": []}', (422, "bad_ids")),
        ("/v1/answers", b'{"ids": ["0"], "wait_s": 1e9}', (422, "bad_wait")),
        ("/v1/elsewhere", b"{}", (404, "no_such_route")),
    ],
    ids=lambda value: str(value)[:40],
)
def test_bad_requests_get_an_error_that_says_why(service, path, content, expected):
    assert post(service, path, content) == expected


def test_an_answer_with_halves_of_characters_and_infinite_figures_is_sent(tmp_path):
    """It failed, for ever, and with it every request that asked for it and for others."""
    odd = "{'result': {'name': 'k' + chr(0xd800), 'sem': float('inf')}}"
    patch = f"from kernelbench.service.dispatcher import Dispatcher; Dispatcher._evaluated = lambda self, job: {odd}"
    serving = Serving(tmp_path, code=patch)
    try:
        assert post(serving, "/v1/evaluations", body())[0] == 202
        asked = json.dumps({"ids": ["0" * 32], "wait_s": 20})
        headers = {"Authorization": f"Bearer {serving.token}"}
        response = httpx2.post(serving.url + "/v1/answers", content=asked, headers=headers, timeout=30)
        assert response.status_code == 200
        assert response.json()["answers"] == {"0" * 32: {"result": {"name": "k\ud800", "sem": float("inf")}}}
    finally:
        assert serving.end() == 0


def test_a_body_without_a_length_is_read_within_the_limit_only(service):
    pieces = (b"x" * (1 << 20) for _ in range(20))
    assert post(service, "/v1/evaluations", pieces)[0] == 413
    assert httpx2.get(service.url + "/v1/health").status_code == 200


@pytest.mark.parametrize("begin", [b"", b"POST /v1/answers HTTP/1.1\r\nHost: x\r\nX: ", b"nonsense\r\n\r\n"])
def test_a_client_that_is_slow_with_its_head_is_hung_up_on(service, begin):
    with socket.create_connection(("127.0.0.1", service.port), timeout=30) as slow:
        slow.sendall(begin)
        while slow.recv(1000):
            pass


def test_a_client_that_is_slow_with_its_body_is_told_so(service):
    lines = ["POST /v1/evaluations HTTP/1.1", "Host: x", f"Authorization: Bearer {service.token}", "Content-Length: 9"]
    head = "\r\n".join([*lines, "", ""])
    with socket.create_connection(("127.0.0.1", service.port), timeout=30) as slow:
        slow.sendall(head.encode() + b"{")
        assert b"408" in slow.recv(1000)


@pytest.mark.parametrize("path", ["/v1/evaluations", "/v1/answers", "/v1/health", "/v1/metrics", "/nothing"])
def test_nothing_of_the_body_of_a_stranger_is_read(service, path):
    """16 GB were, on one connection."""
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000000\r\n\r\n".encode()
    with socket.create_connection(("127.0.0.1", service.port), timeout=10) as stranger:
        stranger.sendall(head)
        answer = stranger.recv(10_000)
        assert answer.split()[1] in (b"401", b"404", b"405") and b"connection: close" in answer.lower()
        with pytest.raises(OSError):
            for _ in range(1000):
                stranger.sendall(bytes(1 << 16))


def test_connections_that_have_ended_take_no_memory(service):
    """Each kept 200 kB for half a minute: strangers took gigabytes."""
    head = b"POST /v1/evaluations HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n" + bytes(60_000)

    def strangers(count):
        for _ in range(count):
            with socket.create_connection(("127.0.0.1", service.port), timeout=10) as stranger:
                stranger.sendall(head)
                assert b"401" in stranger.recv(1000)

    strangers(100)
    before = resident_bytes(service.process.pid)
    strangers(1000)
    assert resident_bytes(service.process.pid) - before < 30e6


@pytest.mark.slow
def test_a_stranger_hears_nothing_of_the_file_of_tokens(tmp_path):
    service = Serving(tmp_path)
    (tmp_path / "tokens").write_text("me\n")
    answer = httpx2.get(service.url + "/v1/metrics", headers={"Authorization": "Bearer x"})
    assert answer.status_code == 503 and "no_tokens" in answer.text and "tokens," not in answer.text
    assert str(tmp_path) not in answer.text
    assert service.end() == 0


@pytest.mark.slow
def test_who_sends_many_large_bodies_has_others_wait_for_a_few(tmp_path):
    """They were parsed in the order in which they came: another client's request took minutes."""
    (tmp_path / "tokens").write_text(f"first {'0' * 64}\nother {'1' * 64}\n")
    (tmp_path / "tokens").chmod(0o600)
    service = Serving(tmp_path)
    large, ended = b"[" + b"[]," * (1 << 20) + b"[]]", []

    def sends(who, content):
        assert post(service, "/v1/answers", content, token=who * 64)[0] == 422
        ended.append(who)

    with ThreadPoolExecutor(13) as pool:
        sent = [pool.submit(sends, "0", large) for _ in range(12)]
        while not ended:
            time.sleep(0.01)
        sent.append(pool.submit(sends, "1", b'{"ids": []}'))
        for one in sent:
            one.result()
    assert ended.index("1") < 9
    assert service.end() == 0


@pytest.mark.slow
def test_a_full_queue_tells_when_to_come_back_and_clients_wait_for_their_turn(service, judge):
    with ThreadPoolExecutor(4) as pool:
        batches = [pool.submit(judge.rewards, [("1/19", f"# {n} {k}\nnonsense(") for k in range(10)]) for n in range(4)]
        found = [[one.label for one in batch.result(300)] for batch in batches]
    assert found == [["build_error"] * 10] * 4
    metrics = httpx2.get(service.url + "/v1/metrics", headers={"Authorization": f"Bearer {service.token}"}).text
    assert 'kb_answers_total{status="build_error"}' in metrics and "kb_submissions_queued 0.0" in metrics


def test_an_evaluator_that_is_killed_is_replaced_and_the_candidate_answered(service, judge):
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(judge.reward, "1/19", WRONG, timeout_s=60)
        os.kill(service.evaluator, signal.SIGKILL)
        assert call.result(300).label == "wrong_value"


def test_a_service_that_is_not_there_is_a_fault_of_the_machine():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        with pytest.raises(EvaluationError, match="no sign of the service"):
            Evaluator(url, "0" * 64, patience_s=0.1).reward("1/19", GOOD)


@pytest.fixture
def proxy(answering):
    """Serve this status and content, whatever is asked."""

    def serve(status, content=b"", **headers):
        return answering(lambda handler: handler.wfile.write(content), status, content_length=len(content), **headers)

    return serve


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_a_proxy_whose_service_is_gone_is_no_sign_of_it(proxy, status):
    """Its words were one, so that a trainer waited for ever."""
    with pytest.raises(EvaluationError, match=f"no sign of the service at .* for 0.5 s: HTTP status {status}"):
        Evaluator(proxy(status, Retry_After="0.1"), "0" * 64, patience_s=0.5).reward("1/19", GOOD)


@pytest.mark.parametrize("content", [b"[]", b"<html>hello</html>", b'{"id": 1}'])
def test_an_answer_of_something_else_says_so(proxy, content):
    with pytest.raises(ValueError, match="does not answer as an evaluation service does"):
        Evaluator(proxy(200, content), "0" * 64).reward("1/19", GOOD)


def test_a_folder_of_others_is_not_closed_to_them(tmp_path):
    """`kb serve-eval .` took the rights of everybody else away, of any folder."""
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o755)
    with pytest.raises(StoreError, match="others can enter .*/shared: choose a new folder, or chmod 700"):
        _make_private(shared)
    assert shared.stat().st_mode & 0o777 == 0o755
    (shared / "queue.sqlite").touch()
    _make_private(shared)
    assert shared.stat().st_mode & 0o777 == 0o700


def test_a_new_folder_is_its_owners_alone(tmp_path):
    _make_private(tmp_path / "above" / "new")
    assert (tmp_path / "above" / "new").stat().st_mode & 0o777 == 0o700
