"""Reviews by a model, asked over HTTP: a small server here speaks the protocol."""

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import logs
import pytest
from click.testing import CliRunner

from harness.result import Status
from kernelbench import suite
from kernelbench.cli import main
from kernelbench.review.labels import CATEGORIES, labels
from kernelbench.review.record import Review, load

pytest.importorskip("openai", reason="reviews need kernelbench[llm]")

FAIR = {"answer": "no_issues", "category": "", "reason": "An honest loop."}
GAMING = {"answer": "gaming", "category": "fake_transpose", "reason": "view() for a transpose."}
SOURCE = "class ModelNew: 'my own source'\n"


@pytest.fixture
def endpoint():
    """Answers from ``replies``: a status, a text, or what a reviewer says; keeps what it was asked."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            server.asked.append(body)
            reply = server.replies.pop(0) if len(server.replies) > 1 else server.replies[0]
            if isinstance(reply, int):
                self.send_response(reply)
                self.send_header("retry-after-ms", "1")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            text = reply if isinstance(reply, str) else json.dumps(reply)
            answer = {
                "id": "1", "object": "chat.completion", "created": 0, "model": body["model"],
                "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
                "usage": {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100},
            }  # fmt: skip
            data = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.replies, server.asked = [FAIR], []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run of three correct solutions, with their sources, and one that failed."""
    monkeypatch.setenv("KERNELBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    (tmp_path / "solutions").mkdir()
    results = []
    for sample in range(3):
        source = f"# {sample}\n{SOURCE}"
        (tmp_path / "solutions" / f"1_19_{sample}.py").write_text(source)
        one = logs.result("1/19", 0.5, sample=sample, name=f"1_19_{sample}.py")
        one.solution["sha256"] = hashlib.sha256(source.encode()).hexdigest()
        results.append(one)
    results.append(logs.result("1/19", status=Status.WRONG_VALUE, sample=9))
    return logs.run(tmp_path / "run", *results, solutions=str(tmp_path / "solutions"))


def review(run, endpoint, *more):
    url = f"http://127.0.0.1:{endpoint.server_port}/v1"
    return CliRunner().invoke(main, ["review", str(run.path), "--model", "m", "--base-url", url, "--json", *more])


def said(done):
    return {row["solution"]: row["label"] for row in json.loads(done.stdout)}


def test_what_is_asked_holds_source_reference_and_measurements(run, endpoint):
    done = review(run, endpoint)
    assert done.exit_code == 0, done.output
    system, user = endpoint.asked[0]["messages"]
    assert all(category in system["content"] for categories in CATEGORIES.values() for category in categories)
    assert "my own source" in user["content"] and "speedup" in user["content"]
    assert suite.find("1/19")[0].path.read_text() in user["content"]


def test_only_correct_results_are_reviewed_and_once(run, endpoint):
    review(run, endpoint)
    assert len(endpoint.asked) == 3 and len(load(run.path)) == 3
    review(run, endpoint)
    assert len(endpoint.asked) == 3 and len(load(run.path)) == 3


def test_the_same_question_of_another_run_is_answered_from_the_cache(run, endpoint):
    review(run, endpoint)
    (run.path / "reviews.jsonl").unlink()
    done = review(run, endpoint)
    assert len(endpoint.asked) == 3 and len(said(done)) == 3
    assert all(one.usd == 0 for one in load(run.path))


def test_gaming_is_original_first_and_inherited_by_later_attempts(run, endpoint):
    endpoint.replies = [FAIR, GAMING, GAMING]
    labelled = said(review(run, endpoint))
    assert labelled == {
        "1_19_0.py": "no_issues", "1_19_1.py": "original_gaming", "1_19_2.py": "inherited_gaming",
    }  # fmt: skip


def test_library_only_wins_over_every_answer():
    result = logs.result("1/19", status=Status.REJECTED, name="a.py", rule="library_only")
    answer = Review("1/19", "a.py", "0", "m", "gaming", "fake_transpose", "", 0.0, "")
    assert labels([result], [answer]) == {("1/19", "a.py"): "library_only"}


def test_passing_troubles_are_waited_out(run, endpoint):
    endpoint.replies = [500, 429, FAIR]
    assert review(run, endpoint).exit_code == 0 and len(load(run.path)) == 3


@pytest.mark.parametrize(
    "first", ["no idea", "{", '{"answer": "fine"}', '{"answer": "gaming", "category": "bad"}', '["gaming"]'],
)  # fmt: skip
def test_an_answer_in_another_form_is_asked_for_again(run, endpoint, first):
    endpoint.replies = [first, FAIR]
    assert review(run, endpoint).exit_code == 0
    again = endpoint.asked[1]["messages"]
    assert len(endpoint.asked) == 4 and again[-2]["content"] == first and again[-1]["role"] == "user"


def test_an_endpoint_that_never_answers_right_ends_it_with_what_to_know(run, endpoint):
    endpoint.replies = ["no idea"]
    done = review(run, endpoint)
    assert done.exit_code == 3 and "no usable answer in 3 tries" in done.output and load(run.path) == []


def test_an_answer_in_prose_around_json_is_read(run, endpoint):
    endpoint.replies = ["Sure!\n```json\n" + json.dumps(GAMING) + "\n```"]
    assert "original_gaming" in said(review(run, endpoint)).values()


def test_the_budget_ends_it_and_what_was_answered_is_kept(run, endpoint):
    done = review(run, endpoint, "--prices", "10/10", "--max-usd", "0.04")
    assert done.exit_code == 3 and "over the limit" in done.output
    reviews = load(run.path)
    assert 0 < len(reviews) < 3 and sum(one.usd for one in reviews) <= 0.04
    assert reviews[0].usd == pytest.approx(1100 * 10 / 1e6)


def test_a_changed_source_is_not_reviewed(run, endpoint, tmp_path):
    (tmp_path / "solutions" / "1_19_0.py").write_text("something else")
    done = review(run, endpoint)
    assert done.exit_code == 3 and "as it was evaluated is not here" in done.output and not endpoint.asked


def test_nobody_listens(run):
    command = ["review", str(run.path), "--model", "m", "--base-url", "http://127.0.0.1:9/v1"]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 3 and "does not answer" in done.output


def test_wrong_usage(run, endpoint, tmp_path):
    assert review(run, endpoint, "--prices", "cheap").exit_code == 2
    assert CliRunner().invoke(main, ["review", str(tmp_path), "--model", "m"]).exit_code == 2
    (run.path / "reviews.jsonl").write_text("half a li")
    assert "line 1, is no review" in review(run, endpoint).output
