"""Labels in every view: standings, leaderboard, curves, comparison, report, exports."""

import csv
import json

import logs
import pytest
from click.testing import CliRunner

from kernelbench.cli import main
from kernelbench.formats import exchange
from kernelbench.report.overview import overview
from kernelbench.report.page import report
from kernelbench.review.record import Review, append
from kernelbench.views import comparison, leaderboard, ranking


def attempt(speedup, sample, **fields):
    made = logs.judged("1/19", speedup, sample=sample, name=f"{sample}.py", **fields)
    made.solution["language"] = "cpp"
    return made


@pytest.fixture
def run(tmp_path):
    """The best of two solutions is gaming, and so the other one is the filtered figure."""
    made = logs.run(tmp_path / "run", attempt(8.0, 0, sol={"t_sol_fp16_ms": 0.05}), attempt(2.0, 1))
    append(made.path, Review("1/19", "0.py", "0", "m", "gaming", "fake_transpose", "a view", 0.0, ""))
    return made


def test_standings_have_bands_and_filtered_figures(run):
    (row,) = ranking.standings([run])["groups"][ranking.ALL]
    assert row["bands"]["original_gaming"] == row["bands"]["unreviewed"] == 1
    assert row["filterings"]["none"]["geometric_mean"] == pytest.approx(8.0)
    assert row["filterings"]["all"]["geometric_mean"] == pytest.approx(2.0)
    assert row["geometric_mean"]["standard"]["value"] == pytest.approx(8.0)  # a review changes no result
    text = ranking.render(ranking.standings([run]), "terminal")
    assert "without gaming" in text and "original gaming" in text


def test_without_a_label_or_with_one_for_all_nothing_is_shown(tmp_path):
    library = logs.judged("1/19", 2.0)  # on a CPU, and its source builds nothing
    for name, one in (("unlabelled", attempt(2.0, 0)), ("library", library)):
        text = ranking.render(ranking.standings([logs.run(tmp_path / name, one)]), "terminal")
        assert "without gaming" not in text
    text = ranking.render(ranking.standings([logs.run(tmp_path / "both", library, attempt(2.0, 1))]), "terminal")
    assert "without gaming" in text


def test_the_leaderboard_names_the_label_of_each_result(run):
    data = leaderboard.summary(run, ["1/19"])
    assert [(row["label"], row["label_category"]) for row in data["results"]] == [
        ("original_gaming", "fake_transpose"), ("unreviewed", ""),
    ]  # fmt: skip
    assert data["filterings"]["all"]["geometric_mean"] == pytest.approx(2.0)


def test_curves_are_filtered_and_have_the_speed_of_light(run):
    found = ranking.standings([run])["curves"]["run"]
    assert max(p for p, _ in found["fast_p"]) == pytest.approx(8.0)
    assert max(p for p, _ in found["filtered_fast_p"]) == pytest.approx(2.0)
    baseline_ms = run.results[0].baselines["eager"]["median_ms"]
    assert max(p for p, _ in found["sol_fast_p"]) == pytest.approx(baseline_ms / 0.05)


def test_a_comparison_names_the_labels_of_both(run, tmp_path):
    honest = logs.run(tmp_path / "honest", attempt(2.0, 0))
    (found,) = comparison.compare(honest, run)
    assert (found.label_before, found.label_after) == ("unreviewed", "original_gaming")
    assert "unreviewed -> original_gaming" in comparison.render(honest, run, "terminal")
    assert "label" not in comparison.render(honest, honest, "terminal")


def test_the_report_has_them_too(run):
    (summary,) = overview([run])["runs"]
    assert summary["bands"]["original_gaming"] == 1
    page = report([run])
    assert '"label":"original_gaming"' in page and '"why_label":"fake_transpose a view"' in page


def test_so_has_a_table_for_notebooks(run, tmp_path):
    exchange.export([run], "csv", tmp_path / "r.csv")
    with (tmp_path / "r.csv").open() as file:
        assert [row["label"] for row in csv.DictReader(file)] == ["original_gaming", "unreviewed"]


def test_the_verdict_over_held_out_workloads_is_a_column_where_there_is_one(run, tmp_path):
    assert "held out" not in leaderboard.result_table(run.latest())
    held = attempt(2.0, 0)
    held.held_out = [{"status": "wrong_value", "draw": ""}]
    assert "specialised" in leaderboard.result_table([held])
    data = leaderboard.summary(logs.run(tmp_path / "held", held), ["1/19"])
    assert data["held_out"] == {"specialised": 1} and data["results"][0]["held_out"] == "specialised"


@pytest.mark.parametrize("command", [["leaderboard"], ["report"], ["export", "--to", "csv", "-o", "x.csv"]])
def test_a_damaged_review_is_named_by_every_command(run, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (run.path / "reviews.jsonl").write_text("half a li\n")
    done = CliRunner().invoke(main, [*command, str(run.path)])
    assert done.exit_code == 2 and "line 1, is no review" in done.output


def test_json_of_standings_is_json(run):
    done = CliRunner().invoke(main, ["leaderboard", str(run.path), "--json"])
    assert json.loads(done.stdout)["groups"]["all"][0]["bands"]["original_gaming"] == 1
