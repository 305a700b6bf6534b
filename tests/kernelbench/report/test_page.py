"""The page as a file: whole, self-contained, inert; and what a run keeps for it."""

import base64
import gzip
import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from logs import result, run
from warm_kb import KB

from harness.problem.module import ProblemFile, ProblemId
from harness.result import Status
from harness.solution.discover import read_solution
from harness.solution.includes import digest_of
from kernelbench.report import page, records
from kernelbench.report.overview import overview
from kernelbench.run import Run, RunError, WriteError
from kernelbench.run_files import sources

H100 = Path(__file__).parents[3] / "results" / "h100"
GOOD = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x): return x.clamp(min=0)\n"


def kb(*arguments, cwd=None):
    return subprocess.run([*KB, *map(str, arguments)], capture_output=True, text=True, timeout=200, cwd=cwd)


def chunk(text, name):
    packed = re.search(f'id="{name}">([A-Za-z0-9+/=]*)</script>', text)[1]
    return json.loads(gzip.decompress(base64.b64decode(packed)))


def data(text):
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.S)[1])


def test_a_log_of_the_h100_is_all_there():
    made = Run.load(H100 / "references")
    text = page.report([made])
    assert len(data(text)["rows"]) == 250
    records = [entry["record"] for number in range(4) for entry in chunk(text, f"details-{number}")]
    assert records == [one.to_json() for one in made.latest()]


def test_nothing_is_loaded_from_anywhere(tmp_path):
    text = page.report([run(tmp_path / "r", result("1/1", 0.5))])
    assert not re.findall(r"""(?:src|href)=["'](?!#)""", text) and "@import" not in text and "url(" not in text
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy.startswith("default-src 'none'") and "unsafe" not in policy and "connect-src 'none'" in policy
    for tag in ("script", "style"):
        (inline,) = re.findall(f"<{tag}>(.*?)</{tag}>", text, re.S)
        digest = base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy


def test_hostile_text_leaves_no_tag_in_the_page(tmp_path):
    evil = "</script><script>alert(1)</script><!--{{script}}"
    made = run(tmp_path / evil.replace("/", "_"), result("1/1", status=Status.CRASHED, message=evil, name=evil))
    plain = page.report([run(tmp_path / "r", result("1/1", status=Status.CRASHED))])
    text = page.report([made])
    assert text.count("<script") == plain.count("<script") and text.count("<!--") == plain.count("<!--")
    assert data(text)["rows"][0]["solution"] == evil


def test_numbers_that_json_lacks_do_not_break_the_page(tmp_path):
    made = run(tmp_path / "r", result("1/1", 0.5, correctness={"max_abs_error": float("nan"), "trials": [1]}))
    made.results[0].timing["samples_ms"] = [1.0]  # one sample: the interval is infinite
    found = chunk(page.report([made]), "details-0")[0]["record"]["correctness"]
    assert found == {"max_abs_error": "nan", "trials": [1]}


def test_the_interval_of_the_record_counts_and_the_baseline_that_ran(tmp_path):
    paired, samples_only = result("1/1", 0.5), result("1/2", 0.5)
    eager = paired.baselines.pop("eager")
    paired.baselines = {
        "compile": {"error": "no compiler"},
        "eager": eager | {"interval": [1.5, 2.5], "verdict": "tie"},
    }
    rows = data(page.report([run(tmp_path / "r", paired, samples_only)]))["rows"]
    assert (rows[0]["low"], rows[0]["high"], rows[0]["verdict"]) == (1.5, 2.5, "tie")
    assert rows[0]["baseline"] == eager["median_ms"]
    assert rows[0]["settled"] == 1.0 and rows[0]["speedup"] == paired.speedup
    assert rows[1]["low"] < rows[1]["speedup"] < rows[1]["high"] and rows[1]["verdict"] == "faster"


def test_figures_of_references_against_themselves_claim_no_speedup():
    (summary,) = overview([Run.load(H100 / "references")])["runs"]
    assert summary["settled_fast_1"]["value"] <= 0.01 and summary["fast_1"]["value"] == pytest.approx(0.532)
    assert summary["geometric_mean"]["value"] == pytest.approx(1, abs=0.002)
    assert summary["raw_geometric_mean"]["value"] == pytest.approx(0.9993, abs=1e-4)
    assert all(set(summary[name]) == {"value", "low", "high"} for name in ("settled_fast_1", "fast_1"))
    assert summary["verdicts"] == {"tie": 240, "unstable": 9, "faster": 1} and summary["solved"] == 250


@pytest.mark.parametrize("name", ["examples", "references", "template"])
def test_committed_runs_open_with_a_verdict_for_every_speedup(name):
    shown = data(page.report([Run.load(H100 / name)]))
    assert shown["overview"]["runs"][0]["workloads"] == ["full"]
    assert all(("verdict" in row) == ("speedup" in row) for row in shown["rows"])


def test_a_correct_result_without_a_speedup_is_solved_and_says_why(tmp_path):
    made = run(tmp_path / "r", result("1/1", status=Status.OK, baselines={"compile": {"error": "no g++"}}))
    shown = data(page.report([made]))
    (summary,) = shown["overview"]["runs"]
    assert summary["solved"] == 1 and summary["settled_fast_1"]["value"] == 0
    assert summary["geometric_mean"]["value"] is None and summary["verdicts"] == {"without a speedup": 1}
    assert shown["rows"][0]["no_speedup"] == "no baseline could be timed: compile: no g++"


def test_the_command(tmp_path):
    made = run(tmp_path / "r", result("1/1", 0.5))
    done = kb("report", made.path, "-o", tmp_path / "page.html")
    assert done.returncode == 0 and "page.html (0." in done.stdout
    assert "kernelbench" in (tmp_path / "page.html").read_text()
    for arguments, status, message in [
        ([tmp_path / "nowhere"], 2, "is no run directory"),
        ([made.path, "-o", tmp_path / "no" / "page.html"], 2, "there is no folder"),
    ]:
        done = kb("report", *arguments)
        assert done.returncode == status and message in done.stderr and "Traceback" not in done.stderr


@pytest.mark.slow
def test_the_page_that_nobody_named_takes_the_place_of_a_link(tmp_path):
    """In a checkout of others it led to any file of ours; who names a link has it written through."""
    made = run(tmp_path / "r", result("1/1", 0.5))
    (tmp_path / "mine").write_text("")
    for name in ("report.html", "named.html"):
        (tmp_path / name).symlink_to("mine")
    assert kb("report", made.path, cwd=tmp_path).returncode == 0
    assert (tmp_path / "mine").read_text() == "" and "</html>" in (tmp_path / "report.html").read_text()
    assert kb("report", made.path, "-o", "named.html", cwd=tmp_path).returncode == 0
    assert "</html>" in (tmp_path / "mine").read_text()


def test_a_run_can_be_reported_where_its_sources_are_not(tmp_path):
    (tmp_path / "solutions" / "level1").mkdir(parents=True)
    (tmp_path / "solutions" / "level1" / "19_relu.py").write_text(GOOD)
    done = kb("eval", "--solutions", tmp_path / "solutions", "--device", "cpu", "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    shutil.rmtree(tmp_path / "solutions")
    (tmp_path / "run" / "references" / "1_19.py").write_text("# kept")
    text = page.report([Run.load(tmp_path / "run")])
    assert chunk(text, "details-0")[0]["source"] == GOOD
    assert chunk(text, "references") == [{"1/19": {"source": "# kept", "kept": True}}]


def test_a_page_has_room_for_so_many_references(tmp_path, monkeypatch):
    """5,000 of 4 MiB each, of nothing but blanks, are a small archive."""
    made = run(tmp_path / "r", *(result(f"1/{number}", 0.5) for number in range(1, 101)))
    looked_at = []
    monkeypatch.setattr(page, "reference_of", lambda *_: looked_at.append(1) or {"source": "x" * 987})
    monkeypatch.setattr(page, "_MOST_TEXT", 10_000)
    (found,) = chunk(page.report([made]), "references")
    assert [reference == {"left_out": True} for reference in found.values()] == [False] * 10 + [True] * 90
    assert len(looked_at) == 10


def test_a_page_has_room_for_so_many_sources_whatever_results_name_the_same(tmp_path, monkeypatch):
    made = run(tmp_path / "r", *(result(f"1/{number}", 0.5) for number in range(1, 101)))
    looked_at = []
    monkeypatch.setattr(records, "source_of", lambda *_: looked_at.append(1) or "x" * 1000)
    monkeypatch.setattr(page, "_MOST_TEXT", 10 * 1006 + 5)  # each with its quotes, and null in place of an attempt
    text = page.report([made])
    found = chunk(text, "details-0") + chunk(text, "details-1")
    assert [detail["source"] is not None for detail in found] == [True] * 10 + [False] * 90
    assert [detail.get("left_out", False) for detail in found] == [False] * 10 + [True] * 90
    assert [detail["record"]["problem"] for detail in found] == [r.problem for r in made.latest()]
    assert len(looked_at) == 11  # else a large one is read for each of the others, which takes hours


@pytest.fixture
def kept(tmp_path):
    """A run with a kept solution, the problem, and a function that makes a result of a solution."""
    (tmp_path / "1_1.py").write_text(GOOD)
    (tmp_path / "001_own.py").write_text("# the problem")
    problem = ProblemFile(ProblemId(1, 1), "own", tmp_path / "001_own.py")
    solution = read_solution(tmp_path / "1_1.py", tmp_path)
    made = run(tmp_path / "run", result("1/1", 0.5, name="1_1.py"), solutions=str(tmp_path))
    made.results[0].solution["sha256"] = solution.sha256
    return made, solution, problem


def test_sources_are_kept_once_by_their_content(kept):
    made, solution, problem = kept
    for _ in range(2):
        sources.keep(made, solution, problem)
    assert [path.name for path in (made.path / "sources").iterdir()] == [f"{solution.sha256}.py"]
    solution.path.write_text("changed since")
    assert sources.source_of(made, made.results[0]) == GOOD
    assert sources.reference_of(made, "1/1") == {"source": "# the problem", "kept": True}


def test_without_a_copy_the_file_counts_while_it_is_the_same(kept):
    made, solution, _ = kept
    assert sources.source_of(made, made.results[0]) == GOOD
    solution.path.write_text("changed since")
    assert sources.source_of(made, made.results[0]) is None
    suites = sources.reference_of(made, "1/1")
    assert "class Model" in suites["source"] and not suites["kept"]
    assert sources.reference_of(made, "9/999") is None and sources.reference_of(made, "../x") is None


def test_the_problem_is_kept_as_it_is_for_the_newest_result(kept):
    made, solution, problem = kept
    sources.keep(made, solution, problem)
    problem.path.write_text("# another problem")
    sources.keep(made, solution, problem)
    assert sources.reference_of(made, "1/1") == {"source": "# another problem", "kept": True}


def test_a_problem_that_was_written_since_it_was_measured_is_not_kept(kept):
    made, solution, problem = kept
    measured, text = digest_of(problem.path), problem.path.read_text()
    sources.keep(made, solution, problem, measured)
    problem.path.write_text("# another problem")
    sources.keep(made, solution, problem, measured)
    assert sources.reference_of(made, "1/1") == {"source": text, "kept": True}


def test_a_kept_source_that_is_a_link_is_not_followed(kept, tmp_path):
    """A run of somebody else could show the source of one of ours, whose digest is in a log that is no secret."""
    made, solution, problem = kept
    sources.keep(made, solution, problem)
    (made.path / "sources").rename(tmp_path / "mine")
    solution.path.unlink()
    (made.path / "sources").symlink_to(tmp_path / "mine")
    assert sources.source_of(made, made.results[0]) is None


def test_no_reference_is_read_from_where_a_run_of_somebody_else_leads(kept, tmp_path):
    made, _, _ = kept
    secret = tmp_path / "private" / "level1" / "001_secret.py"
    secret.parent.mkdir(parents=True)
    secret.write_text("SECRET")
    (made.path / "references").mkdir()
    (made.path / "references" / "2_1.py").symlink_to(secret)
    made.config["problem_dir"] = str(tmp_path / "private")
    assert sources.reference_of(made, "1/1") is None and sources.reference_of(made, "2/1") is None
    (made.path / "references" / "2_1.py").unlink()
    (made.path / "references").rmdir()
    (made.path / "references").symlink_to(secret.parent)
    assert sources.reference_of(made, "1/001_secret") is None


@pytest.mark.parametrize("size", [None, 20 << 30], ids=["device", "20 GB"])
def test_a_trajectory_that_is_none_is_refused_by_name(kept, size):
    made, _, _ = kept
    path = made.path / "trajectory.jsonl"
    if size is None:
        path.symlink_to("/dev/zero")
    else:
        with path.open("w") as file:
            file.truncate(size)
    with pytest.raises(RunError, match="cannot read .*trajectory.jsonl: it is (not a plain file|too large)"):
        sources.trajectory_of(made)


def test_sources_in_a_run_that_was_moved_are_found(kept):
    made, solution, _ = kept
    (made.path / "solutions").mkdir()
    solution.path.rename(made.path / "solutions" / "1_1.py")
    made.config["solutions"] = "runs/where-it-was/solutions"
    assert sources.source_of(made, made.results[0]) == GOOD


def test_a_copy_that_was_tampered_with_is_none(kept):
    made, solution, problem = kept
    sources.keep(made, solution, problem)
    solution.path.unlink()
    (made.path / "sources" / f"{solution.sha256}.py").write_text("something else")
    assert sources.source_of(made, made.results[0]) is None


def test_a_copy_is_written_through_no_link(kept, tmp_path):
    made, solution, problem = kept
    (made.path / "sources").mkdir()
    (made.path / "sources" / f"{solution.sha256}.py").symlink_to(tmp_path / "elsewhere")
    sources.keep(made, solution, problem)
    assert sources.source_of(made, made.results[0]) == GOOD and not (tmp_path / "elsewhere").exists()
    (made.path / "references" / "1_1.py").unlink()
    (made.path / "references").rmdir()
    (made.path / "references").symlink_to(tmp_path)
    with pytest.raises(WriteError, match="references is a link; put a folder in its place"):
        sources.keep(made, solution, problem)


def test_no_room_for_a_copy_is_an_error_that_says_what_to_do(kept):
    made, solution, problem = kept
    (made.path / "sources").write_text("a file in the way")
    with pytest.raises(WriteError, match="continue with --resume"):
        sources.keep(made, solution, problem)


def test_attempts_of_a_solver_are_read_and_damaged_lines_left_out(tmp_path):
    made = run(tmp_path / "r", result("1/1", 0.5, sample=3))
    assert sources.trajectory_of(made) == []
    lines = [{"problem": "1/1", "sample": 3, "turn": 2, "tokens": {"prompt": 10, "completion": 5}, "answer": "so"}]
    text = json.dumps(lines[0]) + '\n[1]\nnull\n{"problem": 1}\n{"problem": "1/'
    (made.path / "trajectory.jsonl").write_text(text)
    assert sources.trajectory_of(made) == lines
    report = page.report([made])
    assert chunk(report, "details-0")[0]["attempt"]["answer"] == "so"
    assert "answer" not in data(report)["attempts"][0] and data(report)["attempts"][0]["turn"] == 2
