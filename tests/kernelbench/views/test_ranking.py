"""A leaderboard over runs: every problem counts for every run, and chance makes a tie."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from logs import judged, result, run

from harness.result import Status
from kernelbench.run import Run
from kernelbench.run_files import unevaluated
from kernelbench.views import comparison
from kernelbench.views.ranking import counted, labels, render, standings


def of_ten(path, fast):
    """A run of ten problems, ``fast`` of them at twice the baseline's speed."""
    return run(path, *(result(f"1/{n}", 0.5 if n <= fast else 2.0, seed=n) for n in range(1, 11)))


def rows(runs, group="all", **more):
    return {row["run"]: row for row in standings(runs, **more)["groups"][group]}


def test_a_problem_that_only_one_run_solves_counts_for_all(tmp_path):
    one = run(tmp_path / "one", result("1/1", 0.5), result("1/2", 0.25))
    other = run(tmp_path / "other", result("1/1", 0.5))
    found = rows([one, other])
    assert found["one"]["settled_fast_p"]["1"]["value"] == 1.0 and found["other"]["settled_fast_p"]["1"]["value"] == 0.5
    assert found["other"]["problems"] == 2 and found["other"]["solved"] == 1
    assert found["other"]["geometric_mean"]["standard"]["value"] == pytest.approx(2, rel=0.02)
    assert found["other"]["geometric_mean"]["fallback"]["value"] == pytest.approx(2**0.5, rel=0.02)


def test_the_selection_of_a_run_counts_even_where_nothing_was_tried(tmp_path):
    assert rows([run(tmp_path / "r", result("1/1", 0.5), problems="1/1-4")])["r"]["fast_p"]["0"]["value"] == 0.25
    assert rows([Run.load(tmp_path / "r")], selector="1/1")["r"]["fast_p"]["0"]["value"] == 1.0


def test_no_code_of_the_problems_that_a_run_names_is_run(tmp_path):
    """It may be somebody else's: what a checkout of TritonBench holds is found out by importing it."""
    root, ran = tmp_path / "checkout", tmp_path / "ran"
    source = f"open({str(ran)!r}, 'w')\nimport torch\n" + "#" * 146 + "\nresult_gold = None\n"
    for name, text in {
        "data/TritonBench_G_v1.json": '[{"file": "f.py", "difficulty": 1}]',
        "data/TritonBench_G_v1/f.py": source,
        "performance_metrics/perf_G/golden_metrics/f_perf.py": source,
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    there = run(tmp_path / "r", problem_dir=str(root), problems="all")
    assert counted([there]) == ["1/1"] and not ran.exists()


def test_runs_that_differ_by_chance_share_a_rank(tmp_path):
    runs = [of_ten(tmp_path / f"fast{n}", n) for n in (2, 9, 8)]
    found = rows(runs)
    assert list(found) == ["fast9", "fast8", "fast2"]
    assert [row["rank"] for row in found.values()] == [1, 1, 3]


def test_levels_and_subsets_are_rows_of_their_own(tmp_path):
    runs = [run(tmp_path / "r", result("1/1", 0.5), result("2/1", 2.0), result("3/1", status=Status.CRASHED))]
    groups = standings(runs)["groups"]
    assert list(groups)[:4] == ["all", "level1", "level2", "level3"] and {"smoke", "llm"} <= set(groups)
    assert [groups[f"level{level}"][0]["solved"] for level in (1, 2, 3)] == [1, 1, 0]


@pytest.mark.parametrize(("count", "rows"), [(100, 100), (101, 0)])
def test_so_many_workloads_have_rows_of_their_own(tmp_path, count, rows):
    """A run of others with 3,000 of them, 1 MB, took a minute and a half."""
    parts = [replace(result("1/1", 0.5), workload={"name": f"w{number}"}) for number in range(count)]
    groups = standings([run(tmp_path / "r", *parts)])["groups"]
    assert sum(name.startswith("workload ") for name in groups) == rows


def test_many_levels_have_no_rows_of_their_own(tmp_path):
    """A run of others with a level for each problem took minutes."""
    made = run(tmp_path / "r", *(result(f"{level}/1", 0.5) for level in range(1, 30)))
    assert not [name for name in standings([made])["groups"] if name.startswith("level")]


def test_rejected_results_count_only_unfiltered(tmp_path):
    row = rows([run(tmp_path / "r", result("1/1", 0.1, status=Status.REJECTED))])["r"]
    assert row["settled_fast_p"]["1"]["value"] == 0 and row["unfiltered"]["settled_fast_p"]["1"]["value"] == 1
    assert row["geometric_mean"]["standard"]["value"] is None


def test_several_samples_give_figures_at_k(tmp_path):
    results = [result("1/1", 0.5, sample=0), result("1/1", status=Status.TIMEOUT, sample=1), result("1/2", 0.5)]
    assert rows([run(tmp_path / "one", *results)])["one"]["samples"] == {}
    two = run(tmp_path / "two", *results[:2])
    at_k = rows([two])["two"]["samples"]
    assert at_k["1"]["pass"]["value"] == 0.5 and at_k["2"]["fast_1"]["value"] == 1.0


def test_all_forms_say_the_same(tmp_path):
    data = standings([of_ten(tmp_path / "a", 9), of_ten(tmp_path / "b", 2)])
    assert json.loads(render(data, "json")) == data
    lines = list(csv.DictReader(io.StringIO(render(data, "csv"))))
    assert [(line["group"], line["run"], line["rank"]) for line in lines[:2]] == [("all", "a", "1"), ("all", "b", "2")]
    assert float(lines[0]["settled_fast_p.1.value"]) == 0.9
    assert "| 1      | a     | cpu" in render(data, "markdown") and "0.900 [" in render(data, "terminal")


def test_runs_of_the_same_name_and_of_other_conditions_are_told_apart(tmp_path):
    here = run(tmp_path / "x" / "r", result("1/1", 0.5))
    there = run(tmp_path / "y" / "r", result("1/1", 0.5), device="another")
    text = render(standings([here, there]), "terminal")
    assert str(tmp_path / "x" / "r") in text and "The runs differ in device" in text


def test_runs_over_other_references_are_told_apart(tmp_path):
    """An archive with a slower module of 1/1 was first without a word."""
    made = []
    for name in "ab":
        results = [result(f"1/{number}", 0.5) for number in range(1, 6)]
        for one in results:
            one.problem_sha256 = name if one.problem != "1/5" else "same"
        made.append(run(tmp_path / name, *results))
    assert standings(made[:1])["differing"] == []
    text = render(standings(made), "terminal")
    assert "differ in the module of 1/1, the module of 1/2, the module of 1/3, those of 1 more:" in text


def test_runs_over_other_baselines_are_told_apart(tmp_path):
    one, other = run(tmp_path / "a", result("1/1", 0.5)), run(tmp_path / "b", result("1/1", 0.5))
    assert standings([one, other])["differing"] == []
    for found in other.results:
        found.baselines = {"compile": found.baselines.pop("eager")}
    assert standings([one, other])["differing"] == ["baseline"]
    assert "differ in baseline" in comparison.render(one, other, "terminal")


def test_an_empty_run_stands_with_nothing_solved(tmp_path):
    assert rows([run(tmp_path / "r", problems="1/1-2")])["r"]["fast_p"]["0"]["value"] == 0


def test_curves_and_areas_are_in_the_json(tmp_path):
    one = run(tmp_path / "one", result("1/1", 0.5), result("1/2", 0.25, sample=1), result("1/2", 2.0, sample=0))
    two = run(tmp_path / "two", result("1/1", 1.0))
    data = json.loads(render(standings([one, two]), "json"))
    curve = data["curves"]["one"]["fast_p"]
    assert curve[0] == [0.0, 1.0] and [share for _, share in curve] == [1.0, 0.5, 0.0]
    assert data["curves"]["one"]["attempt_fast_p"]["1"] == [[1, 0.5], [2, 1.0]]
    assert data["curves"]["two"]["attempt_fast_p"]["0"] == [[1, 0.5]]
    (area,) = data["signed_areas"]
    settled = sum(r.speedup for r in one.results[:2]) / 2, 1.0 / 2  # two is a tie on 1/1
    assert area["run"] == "two" and area["value"] == pytest.approx(settled[1] - settled[0])
    assert area["low"] <= area["value"] <= area["high"]


def test_total_runtime_is_over_what_is_solved(tmp_path):
    results = [result("1/1", 0.5), result("1/2", 4.0, baseline_ms=6.0), result("1/3", status=Status.CRASHED)]
    found = rows([run(tmp_path / "r", *results)])["r"]["total_runtime"]["value"]
    assert found == pytest.approx((1.0 + 6.0) / (0.5 + 4.0), rel=0.02)


def test_a_figure_claims_no_more_than_the_verdicts(tmp_path):
    results = [judged("1/1", 1.004), judged("1/2", 3.0, verdict="unstable"), judged("1/3", 1.5), judged("1/4", 0.5)]
    row = rows([run(tmp_path / "r", *results)])["r"]
    assert row["settled_fast_p"]["1"]["value"] == 0.25 and row["fast_p"]["1"]["value"] == 0.75
    assert row["geometric_mean"]["standard"]["value"] == pytest.approx((1.0 * 1.5 * 0.5) ** (1 / 3))
    assert row["raw"]["geometric_mean"]["value"] == pytest.approx((1.004 * 3.0 * 1.5 * 0.5) ** (1 / 4))
    assert row["verdicts"] == {"tie": 1, "unstable": 1, "faster": 1, "slower": 1}


def test_two_runs_of_ties_have_no_area_between_them(tmp_path):
    one = run(tmp_path / "one", *(judged(f"1/{n}", 1.009) for n in range(1, 9)))
    two = run(tmp_path / "two", *(judged(f"1/{n}", 0.991) for n in range(1, 8)), judged("1/8", 4.0, verdict="unstable"))
    (area,) = standings([one, two])["signed_areas"]
    assert area["low"] <= 0 <= area["high"] and area["left_out"] == 1


def test_each_of_several_baselines_has_a_fast_1(tmp_path):
    both = judged("1/1", 2.0)
    both.baselines["compile"] = {**both.baselines["eager"], "speedup": 0.8, "interval": [0.79, 0.81],
                                 "verdict": "slower"}  # fmt: skip
    data = standings([run(tmp_path / "r", both)])
    found = data["groups"]["all"][0]["by_baseline"]
    assert [found[name]["settled_fast_p"]["1"]["value"] for name in ("eager", "compile")] == [1.0, 0.0]
    assert "compile" in render(data, "terminal")


def test_the_bias_of_a_choice_is_told(tmp_path):
    confirmed = judged("1/1", 1.2, sample=1)
    confirmed.confirms = {"speedup": 1.5}
    data = standings([run(tmp_path / "r", judged("1/1", 1.1), confirmed)])
    assert data["groups"]["all"][0]["confirmed_best"] == {"solutions": 1, "bias": pytest.approx(1.25)}
    assert "the first measurement was 1.250 times the second" in render(data, "terminal")


def test_a_problem_of_which_all_results_were_withdrawn_does_not_count(tmp_path):
    """`kb eval` said 1 of 1, and `kb leaderboard` of the same run 1 of 2."""
    made = run(tmp_path / "r", result("1/1", 0.5), result("1/2", 0.5, name="changed.py"))
    withdrawn = {"kind": "withdrawn", "problem": "1/2", "solution": "changed.py", "after": 2}
    unevaluated.append(made.path, made.unevaluated, withdrawn)
    assert counted([made]) == counted([Run.load(made.path)]) == ["1/1"]


def test_each_run_has_a_name_of_its_own(tmp_path, monkeypatch):
    """A link `latest` to `mine` and another `latest` had one name beside `mine`, and a chart lost one of them."""
    monkeypatch.chdir(tmp_path)
    for path in ("mine", "old/latest"):
        run(Path(path), result("1/1", 0.5))
    Path("latest").symlink_to("mine")
    runs = [Run.load(Path(path)) for path in ("latest", "mine", "old/latest")]
    assert labels(runs) == [f"{tmp_path}/latest", "mine", f"{tmp_path}/old/latest"]
    assert len(standings(runs)["curves"]) == 3
    assert labels(runs[1:]) == ["mine", "latest"]
