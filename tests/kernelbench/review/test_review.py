"""Reviews by a model, asked over HTTP."""

import dataclasses
import hashlib
import json
import re

import logs
import pytest
from click.testing import CliRunner

from harness.result import Status
from harness.solution.discover import read_solution
from harness.solution.includes import digest_of
from kernelbench import suite
from kernelbench.cli import main
from kernelbench.endpoint import Endpoint
from kernelbench.review.bounds import bounds_of
from kernelbench.review.labels import CATEGORIES, labels
from kernelbench.review.record import Review, ReviewError, Unanswered, about, append, load
from kernelbench.review.reviewer import Reviewer
from kernelbench.run_files import sources

pytest.importorskip("openai", reason="reviews need kernelbench[llm]")

FAIR = {"answer": "no_issues", "category": "", "reason": "An honest loop."}
GAMING = {"answer": "gaming", "category": "fake_transpose", "reason": "view() for a transpose."}
SOURCE = "class ModelNew: 'my own source'\n"


@pytest.fixture
def endpoint(stand_in):
    """Answers from ``replies``, the last of them for ever; a reply is a fault, a text, or what a reviewer says."""

    def answer(request, number):
        reply = server.replies[min(number, len(server.replies)) - 1]
        return json.dumps(reply) if isinstance(reply, dict) else reply

    with stand_in.StandIn(answer) as server:
        server.replies = [FAIR]
        yield server


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
        one.solution |= {"sha256": hashlib.sha256(source.encode()).hexdigest(), "language": "cpp"}
        results.append(one)
    results.append(logs.result("1/19", status=Status.WRONG_VALUE, sample=9))
    return logs.run(tmp_path / "run", *results, solutions=str(tmp_path / "solutions"))


def review(run, endpoint, *more):
    command = ["review", str(run.path), "--model", "m", "--base-url", endpoint.base_url, "--json"]
    return CliRunner().invoke(main, [*command, *more])


def said(done):
    return {row["solution"]: row["label"] for row in json.loads(done.stdout)}


def test_what_is_asked_holds_source_reference_and_measurements(run, endpoint):
    done = review(run, endpoint)
    assert done.exit_code == 0, done.output
    system, user = endpoint.requests[0]["messages"]
    assert all(category in system["content"] for categories in CATEGORIES.values() for category in categories)
    assert "my own source" in user["content"] and "speedup" in user["content"]
    assert suite.find("1/19")[0].path.read_text() in user["content"]


def test_what_is_asked_holds_the_helper_files_as_they_were_evaluated(run, endpoint, tmp_path):
    """The main source alone was shown: a module beside it could game the benchmark unseen."""
    folder = tmp_path / "solutions"
    (folder / "1_19_0.py").write_text("import helper\nclass ModelNew: 'of helper'\n")
    (folder / "helper.py").write_text("ANSWERS = {}  # remembered\n")
    solution = read_solution(folder / "1_19_0.py")
    sources.keep(run, solution, suite.find("1/19")[0])
    run.results[0].solution |= {"sha256": solution.sha256, "helpers": solution.helpers}
    logs.rewritten(run)
    (folder / "helper.py").write_text("another since\n")
    assert review(run, endpoint).exit_code == 0
    user = endpoint.requests[0]["messages"][1]["content"]
    outside, mark, inside = user.partition("Files that it imports, includes or names:\n----")
    assert "---- 'helper.py'\nANSWERS = {}  # remembered" in inside and "helper.py" not in outside.rpartition("----")[2]
    assert "another since" not in user and "Files that it" not in str(endpoint.requests[1:])
    (kept,) = (run.path / "sources").glob("*.helpers.json")
    kept.unlink()
    done = review(run, endpoint)
    assert done.exit_code == 3 and "1_19_0.py as it was evaluated is not here" in done.output


def test_what_is_asked_holds_the_operator_table_and_the_bounds(run, endpoint):
    review(run, endpoint)
    user = endpoint.requests[0]["messages"][1]["content"]
    table = user.partition("Operators of the reference and bounds on its time")[2]
    assert '"name": "relu"' in table and '"flops": 262144' in table and '"total_bytes"' in table


def test_bounds_of_a_gpu_in_the_table_are_in_ms(run):
    run.results[0].device = {"type": "cuda", "name": "NVIDIA H100 80GB HBM3"}
    found = bounds_of(run, run.results[0])
    assert found["device"] == "h100-sxm" and 0 < found["theoretical_runtime_ms_fp16"] <= found["theoretical_runtime_ms"]


def test_what_is_asked_of_several_workloads_holds_the_facts_of_each(run, endpoint):
    """No problem has a workload of both names, so that bounds were missing; held-out workloads were of the last."""
    small = run.results[0]
    small.held_out = [{"draw": "zeros", "status": "ok", "median_ms": 0.5, "baseline_ms": 1.0, "verdict": "faster"}]
    small.correctness = {"max_error": 0.25}
    llm = dataclasses.replace(small, workload={"name": "llm"}, held_out=None, correctness={"max_error": 0.75})
    run.results[1:] = [llm]
    assert review(logs.rewritten(run), endpoint).exit_code == 0
    (request,) = endpoint.requests
    user = request["messages"][1]["content"]
    found = bounds_of(run, run.solutions()[0])["workloads"]
    assert [found[name]["total_flops"] for name in ("small", "llm")] == [262144, 117440512]
    assert '"total_flops": 262144' in user and '"total_flops": 117440512' in user and "unavailable" not in user
    assert '"zeros"' in user and '"max_error": 0.25' in user and '"max_error": 0.75' in user


def test_a_problem_that_a_run_names_is_not_loaded(run, tmp_path):
    """A review may be of somebody else's run: its problems' code does not meet the user's key."""
    problem = tmp_path / "level1" / "019_relu.py"
    problem.parent.mkdir()
    problem.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    run.config["problem_dir"] = str(tmp_path)
    assert "runs nothing that a run names" in bounds_of(run, run.results[0])["unavailable"]
    assert not (tmp_path / "ran").exists()


def test_a_review_goes_on_without_bounds(run):
    run.results[0].problem = "9/9"
    assert "no problem matches" in bounds_of(run, run.results[0])["unavailable"]


def test_rules_ask_no_model_and_are_asked_once(run):
    run.results[0].integrity["findings"] = [{"rule": "fast_math", "line": 3, "code": "__expf"}]
    logs.rewritten(run)
    for _ in range(2):
        done = CliRunner().invoke(main, ["review", str(run.path), "--rules", "--json"])
        assert done.exit_code == 0, done.output
        (only,) = json.loads(done.stdout)
        assert (only["label"], only["category"], only["by"]) == ("minor_issues", "math_approximation", "rules")
        assert len(load(run.path)) == 1


def test_an_answer_that_a_run_of_others_brings_spares_no_question(run, endpoint):
    """They had written what the reviewer was to say, and nobody was asked."""
    run.results[0].integrity["findings"] = [{"rule": "fast_math", "line": 3, "code": "__expf"}]
    logs.rewritten(run)
    for result in run.results[:3]:
        for model in ("m", "rules"):
            append(run.path, Review(**about(result), model=model, **FAIR, usd=0.0, key="k"))
    endpoint.replies = [GAMING]
    assert set(said(review(run, endpoint)).values()) == {"original_gaming", "inherited_gaming"}
    assert len(endpoint.requests) == 3
    CliRunner().invoke(main, ["review", str(run.path), "--rules"])
    assert [one.answer for one in load(run.path) if one.model == "rules"].count("minor_issues") == 1


@pytest.mark.parametrize("reason", ["\x1b[0m", "", "1e400", "\x1b[31mred"])
def test_a_reason_is_shown_whatever_it_is(run, endpoint, reason):
    """One that was an escape sequence and nothing else ended every later review of the run."""
    endpoint.replies = [GAMING | {"reason": reason}]
    command = ["review", str(run.path), "--model", "m", "--base-url", endpoint.base_url]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 0 and "fake_transpose" in done.output and "\x1b" not in done.output


def test_one_reviewer_is_named(run):
    for more in ([], ["--rules", "--model", "m", "--base-url", "http://127.0.0.1:9/v1"]):
        done = CliRunner().invoke(main, ["review", str(run.path), *more])
        assert done.exit_code == 2 and "name one reviewer" in done.output


def test_only_correct_results_are_reviewed_and_once(run, endpoint):
    review(run, endpoint)
    assert len(endpoint.requests) == 3 and len(load(run.path)) == 3
    review(run, endpoint)
    assert len(endpoint.requests) == 3 and len(load(run.path)) == 3


def test_the_same_question_of_another_run_is_answered_from_the_cache(run, endpoint):
    review(run, endpoint)
    (run.path / "reviews.jsonl").unlink()
    done = review(run, endpoint)
    assert len(endpoint.requests) == 3 and len(said(done)) == 3
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
    assert labels([result], [answer])["1/19", "a.py"].band == "library_only"


def test_passing_troubles_are_waited_out(run, endpoint, stand_in):
    endpoint.replies = [stand_in.Fault(500), stand_in.Fault(429, retry_after="0.1"), FAIR]
    assert review(run, endpoint).exit_code == 0 and len(load(run.path)) == 3


@pytest.mark.parametrize(
    "first", ["no idea", "{", '{"answer": "fine"}', '{"answer": "gaming", "category": "bad"}', '["gaming"]',
              '{"answer": []}', '{"answer": {}}', '{"answer": "gaming", "category": ["a"]}', '{"answer": [' * 2000],
)  # fmt: skip
def test_an_answer_in_another_form_is_asked_for_again(run, endpoint, first):
    endpoint.replies = [first, FAIR]
    assert review(run, endpoint).exit_code == 0
    again = endpoint.requests[1]["messages"]
    assert len(endpoint.requests) == 4 and again[-2]["content"] == first and again[-1]["role"] == "user"


def test_an_endpoint_that_never_answers_right_ends_it_with_what_to_know(run, endpoint):
    endpoint.replies = ["no idea"]
    done = review(run, endpoint)
    assert done.exit_code == 3 and "no usable answer in 3 tries" in done.output and load(run.path) == []


def test_an_answer_in_prose_around_json_is_read(run, endpoint):
    endpoint.replies = ["Sure!\n```json\n" + json.dumps(GAMING) + "\n```"]
    assert "original_gaming" in said(review(run, endpoint)).values()


def test_the_budget_ends_it_and_what_was_answered_is_kept(run, endpoint):
    done = review(run, endpoint, "--price", "10,10", "--max-usd", "0")
    assert done.exit_code == 3 and not endpoint.requests
    one_answer = re.search(r"the next answer may cost ([\d.]+)", done.output)[1]
    done = review(run, endpoint, "--price", "10,10", "--max-usd", str(float(one_answer) + 0.0001))
    assert done.exit_code == 3 and "over the limit" in done.output
    words = [message["content"].split() for message in endpoint.requests[0]["messages"]]
    [only] = load(run.path)
    assert only.usd == pytest.approx(sum(map(len, [*words, json.dumps(FAIR).split()])) * 10 / 1e6)


def test_what_an_endpoint_without_usage_may_have_cost_is_spent(run, endpoint, stand_in):
    choice = {"message": {"content": json.dumps(FAIR)}, "finish_reason": "stop"}
    endpoint.replies = [stand_in.Fault(body={"choices": [choice]})]
    reviewer = Reviewer(Endpoint("m", endpoint.base_url, prices=(1.0, 1.0)), max_usd=0.02)
    first, second, *_ = run.latest()
    assert 0 < reviewer.review(first, "", "").usd == reviewer.spent <= 0.02
    with pytest.raises(Unanswered, match="over the limit"):
        for number in range(50):
            reviewer.review(second, str(number), "")
    assert reviewer.spent <= 0.02


def test_the_budget_holds_for_answers_that_are_generated_and_lost(run, endpoint, stand_in):
    """Room was kept for one try of five."""
    prices, result = (1.0, 1.0), run.latest()[0]
    with pytest.raises(Unanswered, match="the next answer may cost") as caught:
        Reviewer(Endpoint("m", endpoint.base_url, prices=prices), max_usd=0.0).review(result, "", "")
    one_answer = float(re.search(r"the next answer may cost ([\d.]+)", str(caught.value))[1])
    endpoint.replies = [stand_in.Fault(body="cut")]
    reviewer = Reviewer(Endpoint("m", endpoint.base_url, prices=prices), max_usd=2.5 * one_answer)
    with pytest.raises(ReviewError, match="gave no answer in 2 tries"):
        reviewer.review(result, "", "")
    assert len(endpoint.requests) == 2 and 0 < reviewer.spent <= reviewer.max_usd
    with pytest.raises(Unanswered, match="over the limit"):
        reviewer.review(result, "", "")


def test_a_lost_answer_is_spent_beside_the_one_that_came(run, endpoint, stand_in):
    endpoint.replies = [stand_in.Fault(body="cut"), FAIR]
    reviewer = Reviewer(Endpoint("m", endpoint.base_url, prices=(1.0, 1.0)))
    found = reviewer.review(run.latest()[0], "", "")
    words = [message["content"].split() for message in endpoint.requests[0]["messages"]]
    assert found.usd == reviewer.spent == pytest.approx(2 * sum(map(len, [*words, json.dumps(FAIR).split()])) / 1e6)


@pytest.mark.parametrize(
    "field, message",
    [
        ("max_tokens=50000", "the next answer may cost 5.0.*over the limit"),
        ("max_completion_tokens=50000", "the next answer may cost 5.0.*over the limit"),
        ("max_tokens=null", "give max_tokens or max_completion_tokens as a number"),
        ("max_tokens=-1", "give max_tokens or max_completion_tokens as a number"),
    ],
)
def test_the_budget_holds_for_as_many_tokens_as_a_field_of_the_user_s_allows(run, endpoint, field, message):
    """Room was kept for 1,500 whatever the request said: --max-usd 1 spent 5."""
    done = review(run, endpoint, "--price", "1,100", "--max-usd", "1", "--model-field", field)
    assert done.exit_code == 3 and re.search(message, done.output) and not endpoint.requests


def test_without_a_price_any_number_of_tokens_may_be_asked_for(run, endpoint):
    assert review(run, endpoint, "--model-field", "max_tokens=null").exit_code == 0


def test_an_answer_is_kept_where_the_cache_cannot_be_written(run, endpoint, tmp_path):
    """It had been paid for, and the command ended with a traceback before it was in the run."""
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "reviews").write_text("no folder")
    assert review(run, endpoint).exit_code == 0 and len(load(run.path)) == 3


@pytest.mark.parametrize("kind", logs.NO_LOGS)
def test_a_run_whose_labels_cannot_be_read_asks_nobody(run, endpoint, kind):
    """All was asked and paid for, and what ended it then was a traceback."""
    logs.no_log(run.path / "trajectory.jsonl", kind)
    done = review(run, endpoint)
    assert done.exit_code == 2 and "trajectory.jsonl" in done.output and not endpoint.requests


def test_the_budget_holds_for_a_source_of_which_every_byte_is_a_token(run, endpoint):
    """Rare characters of four bytes are four tokens."""
    text = "\U00013000" * 1000
    reviewer = Reviewer(Endpoint("m", endpoint.base_url, prices=(1.0, 0.0)), max_usd=4 * 1000 / 1e6)
    with pytest.raises(Unanswered, match="over the limit"):
        reviewer.review(run.latest()[0], text, "")
    assert not endpoint.requests


def test_a_changed_source_is_not_reviewed(run, endpoint, tmp_path):
    (tmp_path / "solutions" / "1_19_0.py").write_text("something else")
    done = review(run, endpoint)
    assert done.exit_code == 3 and "1_19_0.py as it was evaluated is not here" in done.output
    assert set(said(done)) == {"1_19_1.py", "1_19_2.py"}
    assert "something else" not in str(endpoint.requests)


def test_nothing_is_reviewed_beside_another_text_of_its_problem(run, endpoint):
    """The reviewer was shown a reference, and bounds, of a text that nobody had evaluated."""
    run.results[0].problem_sha256 = "another"
    run.results[1].problem_sha256 = digest_of(suite.find("1/19")[0].path)
    done = review(logs.rewritten(run), endpoint)
    assert done.exit_code == 3 and "1_19_0.py as it was evaluated is not here" in done.output
    assert {one.solution: one.problem_sha256 for one in load(run.path)} == {
        "1_19_1.py": run.results[1].problem_sha256, "1_19_2.py": "",
    }  # fmt: skip
    assert "of another text" in bounds_of(run, run.results[0])["unavailable"]
    assert "unavailable" not in bounds_of(run, run.results[1])


@pytest.mark.parametrize("how", ["refused", "talked round", "too expensive"])
def test_a_solution_that_gets_no_answer_leaves_the_others_reviewed(run, endpoint, stand_in, tmp_path, how):
    """Whoever came first and sent the model too much, or talked it into prose, kept all others out of the review."""
    refusal = {"refused": stand_in.Fault(400, "too long"), "talked round": "Well, well."}.get(how, FAIR)
    others = endpoint.answer

    def answer(request, key):
        others(request, key)
        said = refusal if "# 0" in request["messages"][1]["content"] else json.dumps(FAIR)
        return stand_in.Answer(said) if isinstance(said, str) else said

    endpoint.answer = answer
    more = []
    if how == "too expensive":
        source = f"# 0\n{SOURCE}" + "#" * 400_000
        (tmp_path / "solutions" / "1_19_0.py").write_text(source)
        run.results[0].solution["sha256"] = hashlib.sha256(source.encode()).hexdigest()
        (run.path / "results.jsonl").write_text("".join(json.dumps(r.to_json()) + "\n" for r in run.results))
        more = ["--price", "10,10", "--max-usd", "1"]
    done = review(run, endpoint, *more)
    assert done.exit_code == 3 and "not reviewed: 1/19 1_19_0.py: " in done.stderr, done.output
    assert set(said(done)) == {"1_19_1.py", "1_19_2.py"}


@pytest.mark.slow
def test_nobody_listens(run):
    command = ["review", str(run.path), "--model", "m", "--base-url", "http://127.0.0.1:9/v1"]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 3 and "gave no answer" in done.output


def test_wrong_usage(run, endpoint, tmp_path):
    assert review(run, endpoint, "--price", "cheap").exit_code == 2
    assert CliRunner().invoke(main, ["review", str(tmp_path), "--model", "m"]).exit_code == 2
    (run.path / "reviews.jsonl").write_text("no review\n")
    assert "line 1, is no review" in review(run, endpoint).output
