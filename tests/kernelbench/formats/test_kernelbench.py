"""KernelBench's files, in and out: nothing that its format can hold is lost."""

import copy
import csv
import importlib.util
import json
import math
import subprocess
from pathlib import Path

import pytest
from linear_time import MEGABYTE, in_linear_time
from logs import result, run
from warm_kb import KB

from harness.result import Status
from kernelbench.formats import exchange, kernelbench
from kernelbench.metrics import settled
from kernelbench.metrics.workloads import UNKNOWN
from kernelbench.run import CONFIG, LOG, Run
from kernelbench.run_files import log
from kernelbench.views.comparison import Change, compare
from kernelbench.views.ranking import standings

STATISTICS = {
    "mean": 2.0, "std": 0.01, "min": 1.9, "max": 2.2, "num_trials": 100, "hardware": "NVIDIA L40S", "device": "cuda:0",
}  # fmt: skip
WHERE = {"hardware": "NVIDIA L40S", "device": "cuda:0"}
EVALUATED = {
    "19": [
        {
            "sample_id": 0, "compiled": True, "correctness": True,
            "metadata": {**WHERE, "correctness_trials": "(5 / 5)"}, "runtime": 2.0, "runtime_stats": STATISTICS,
            "ref_runtime": 4.0,
        },
        {
            "sample_id": 1, "compiled": True, "correctness": False, "runtime": -1.0, "runtime_stats": {},
            "metadata": {**WHERE, "correctness_issue": "Output mismatch", "max_difference": ["0.5", "0.25"]},
        },
    ],
    "20": [
        {
            "sample_id": 0, "compiled": False, "correctness": False, "runtime": -1.0, "runtime_stats": {},
            "metadata": {**WHERE, "compilation_error": "nvcc said no", "compilation_error_name": "RuntimeError"},
        },
        {
            "sample_id": 3, "compiled": True, "correctness": False, "runtime": -1.0, "runtime_stats": {},
            "metadata": {**WHERE, "runtime_error": "illegal memory access"},
        },
    ],
    "21": [
        {
            "sample_id": 0, "compiled": True, "correctness": True, "runtime": -1.0, "runtime_stats": {},
            "metadata": {**WHERE, "correctness_trials": "(5 / 5)"},
        },
    ],
}  # fmt: skip
BASELINE = {"level1": {"19_ReLU.py": {**STATISTICS, "mean": 3.0}, "20_LeakyReLU": STATISTICS, "21_Sigmoid.py": None}}


@pytest.fixture
def files(tmp_path):
    (tmp_path / "eval_results.json").write_text(json.dumps(EVALUATED))
    (tmp_path / "baseline_time_torch.json").write_text(json.dumps(BASELINE))
    return tmp_path


def read(folder):
    return kernelbench.read_eval_results(folder / "eval_results.json", 1, folder / "baseline_time_torch.json")


def test_an_imported_result_has_status_message_times_and_speedup(files):
    results = read(files)
    assert [(r.problem, r.solution["sample"], r.status.value) for r in results] == [
        ("1/19", 0, "ok"), ("1/19", 1, "wrong_value"), ("1/20", 0, "build_error"), ("1/20", 3, "runtime_error"),
        ("1/21", 0, "ok"),
    ]  # fmt: skip
    assert results[0].speedup == 1.5 and results[0].timing["mean_ms"] == 2.0 and results[0].problem_name == "ReLU"
    assert results[2].message == "nvcc said no" and results[0].device["name"] == "NVIDIA L40S"
    assert results[4].correct and results[4].speedup is None


def test_round_trip_of_results_loses_nothing(files):
    assert kernelbench.eval_results(read(files), 1) == EVALUATED


def test_round_trip_through_a_run_on_disk_loses_nothing(files):
    made = exchange.import_kernelbench(
        files / "eval_results.json", 1, files / "run", files / "baseline_time_torch.json"
    )
    exchange.export([Run.load(made.path)], "kernelbench", files / "out.json")
    assert json.loads((files / "out.json").read_text()) == EVALUATED
    exchange.export([made], "baseline", files / "baseline.json")
    timed = {name: stats for name, stats in BASELINE["level1"].items() if stats}
    assert json.loads((files / "baseline.json").read_text()) == {"level1": timed}


def test_every_problem_of_an_imported_level_counts(files):
    made = exchange.import_kernelbench(
        files / "eval_results.json", 1, files / "run", files / "baseline_time_torch.json"
    )
    (row,) = standings([made])["groups"]["all"]
    assert row["problems"] == 100 and row["solved"] == 2 and row["fast_p"]["1"]["value"] == 0.01


def test_two_results_of_one_sample_are_refused(files):
    twice = {**EVALUATED, "019": EVALUATED["19"][:1]}
    (files / "eval_results.json").write_text(json.dumps(twice))
    with pytest.raises(kernelbench.FormatError, match="two results of sample 0 of 1/19"):
        read(files)


def interrupted_at_its_configuration(monkeypatch):
    """Interrupt the import where its log is written, and its configuration is to follow."""
    write, logs = log.write_new, []

    def interrupted(path, content):
        if path.name == CONFIG:
            logs.append((path.parent / LOG).read_text())
            raise KeyboardInterrupt
        write(path, content)

    monkeypatch.setattr(log, "write_new", interrupted)
    return logs


def test_an_import_that_is_killed_leaves_no_run_without_results(files, monkeypatch):
    """A run with an empty log ranked as one that had solved nothing."""
    logs = interrupted_at_its_configuration(monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        exchange.import_kernelbench(files / "eval_results.json", 1, files / "run")
    assert [len(text.splitlines()) for text in logs] == [len(read(files))]


def test_an_import_that_is_interrupted_leaves_no_run(files, monkeypatch):
    interrupted_at_its_configuration(monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        exchange.import_kernelbench(files / "eval_results.json", 1, files / "run")
    assert not (files / "run").exists()


def test_an_import_that_is_interrupted_leaves_what_was_in_its_folder(files, monkeypatch):
    """A folder with hidden files only is taken for empty: its repository was gone."""
    (files / "run" / ".git").mkdir(parents=True)
    (files / "run" / ".git" / "HEAD").write_text("ref")

    interrupted_at_its_configuration(monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        exchange.import_kernelbench(files / "eval_results.json", 1, files / "run")
    assert [path.name for path in (files / "run").iterdir()] == [".git"] and (files / "run" / ".git" / "HEAD").exists()


def test_an_imported_level_that_the_suite_lacks_can_be_shown(files):
    made = exchange.import_kernelbench(files / "eval_results.json", 4, files / "run")
    (row,) = standings([Run.load(made.path)])["groups"]["all"]
    assert row["problems"] == len(EVALUATED)


def test_an_older_file_with_one_object_a_problem_is_read(files):
    old = {number: entries[0] for number, entries in EVALUATED.items()}
    (files / "eval_results.json").write_text(json.dumps(old))
    assert kernelbench.eval_results(read(files), 1) == {number: [entry] for number, entry in old.items()}


def test_our_results_come_back_with_their_status(tmp_path):
    ours = [
        result(f"1/{n}", status=status, message="why") for n, status in enumerate(Status, 1) if status is not Status.OK
    ]
    ours.append(result("1/99", 0.5))
    data = kernelbench.eval_results(ours, 1)
    assert data["99"][0]["runtime"] == ours[-1].timing["mean_ms"] and data["2"][0]["runtime"] == -1.0
    assert [data[k][0]["compiled"] for k in ("2", "3", "4")] == [False, False, True]
    (tmp_path / "eval_results.json").write_text(json.dumps(data))
    back = kernelbench.read_eval_results(tmp_path / "eval_results.json", 1)
    assert {r.problem: (r.status, r.message) for r in back} == {r.problem: (r.status, r.message) for r in ours}


def test_a_message_is_no_command_to_a_ci_that_shows_the_file(tmp_path):
    run = Run.create(tmp_path / "r", {"solutions": "s"})
    failed = result("1/1", status=Status.RUNTIME_ERROR)
    failed.message = "##vso[task.setvariable]\n##[error]forged"
    run.append(failed)
    exchange.export([run], "kernelbench", tmp_path / "out.json")
    text = (tmp_path / "out.json").read_text()
    assert "##" not in text and "##[error]forged" in json.dumps(json.loads(text))


def test_a_time_that_no_clock_of_ours_confirmed_does_not_leave_us():
    """It is the candidate's word: a hundredth of PyTorch's time made it the fastest of all once it was read again."""
    unread = result("1/1", 0.001)
    unread.speedup, unread.timing["cross_check"] = None, "not read: no memory"
    ((entry,),) = kernelbench.eval_results([unread], 1).values()
    assert (entry["correctness"], entry["runtime"], entry["runtime_stats"]) == (True, -1.0, {})


def sized(problem, ms, name="small", **sizes):
    made = result(problem, ms)
    made.workload = {"name": name, "sizes": sizes, "flops": 1e6, "bytes": 4096}
    return made


def exported(folder, *results):
    """A run and its baseline in KernelBench's files, and imported again."""
    made = run(folder / "ours", *results)
    exchange.export([made], "kernelbench", folder / "out.json")
    exchange.export([made], "baseline", folder / "baseline_time_torch.json")
    exchange.import_kernelbench(folder / "out.json", 1, folder / "again", folder / "baseline_time_torch.json")
    return made, Run.load(folder / "again")


def test_the_workload_survives_export_and_import(tmp_path):
    made, again = exported(tmp_path, sized("1/19", 0.5, dim=4096))
    assert again.results[0].workload == made.results[0].workload
    assert again.config["workload"] == "small"
    assert [d.change for d in compare(made, again)] == [Change.TIE]


def test_an_import_that_names_no_sizes_says_that_they_are_unknown(files):
    assert {r.workload["name"] for r in read(files)} == {UNKNOWN}
    done = kb("import", files / "eval_results.json", "--level", 1, "--out", files / "run")
    assert "5 of unknown sizes" in done.stdout and "--workload" in done.stdout
    assert Run.load(files / "run").config["workload"] == UNKNOWN


def test_sizes_named_at_the_import_are_kept(files):
    arguments = ["--level", 1, "--workload", "full", "--out", files / "run"]
    assert "unknown" not in kb("import", files / "eval_results.json", *arguments).stdout
    made = Run.load(files / "run")
    assert {r.workload["name"] for r in made.results} == {"full"}
    (files / "out.json").write_text(json.dumps(kernelbench.eval_results(made.results, 1)))
    assert {r.workload["name"] for r in kernelbench.read_eval_results(files / "out.json", 1)} == {"full"}


def test_a_baseline_of_other_sizes_gives_no_speedup_and_says_why(files):
    """KernelBench's baselines are of sizes that it does not name: not of ``small``, for all that is known."""
    (files / "ours.json").write_text(json.dumps(kernelbench.eval_results([sized("1/19", 0.5)], 1)))
    (back,) = kernelbench.read_eval_results(files / "ours.json", 1, files / "baseline_time_torch.json")
    assert back.correct and back.speedup is None
    assert settled.why_no_speedup(back).endswith("its sizes are unknown, and those of the solution small")


def test_means_and_deviations_give_an_imported_speedup_its_interval_and_verdict(files):
    first, *_ = read(files)
    low, high = settled.interval(first)
    half = 1.96 * math.hypot(0.01 / 2.0, 0.01 / 3.0) / 100**0.5  # relative, of the ratio of both means
    assert (low, high) == (pytest.approx(1.5 * (1 - half), rel=1e-5), pytest.approx(1.5 * (1 + half), rel=1e-5))
    assert settled.verdict(first) == settled.FASTER


@pytest.mark.parametrize("lacking", [["std"], ["num_trials"], list(STATISTICS)])
def test_an_imported_speedup_without_spread_is_unstable(files, lacking):
    data = copy.deepcopy(EVALUATED)
    for key in lacking:
        del data["19"][0]["runtime_stats"][key]
    (files / "eval_results.json").write_text(json.dumps(data))
    first, *_ = read(files)
    assert first.speedup == 1.5 and settled.interval(first) is None and settled.verdict(first) == settled.UNSTABLE


def changed(path, value):
    data = copy.deepcopy(EVALUATED)
    data["19"][0][path] = value
    return data


@pytest.mark.parametrize(
    "content, message",
    [
        ("no json", "is not JSON"),
        ("[]", "expected an object"),
        ('{"relu": []}', "'relu' is no problem number"),
        ('{"19": 5}', "an entry of problem 19 is no object"),
        ('{"19": [{}]}', "an entry of problem 19 is not as expected: KeyError"),
        (json.dumps(changed("metadata", "text")), "an entry of problem 19"),
        (json.dumps(changed("runtime", "fast")), "an entry of problem 19"),
    ],
)
def test_a_file_in_another_format_is_an_error_that_says_where(files, content, message):
    (files / "eval_results.json").write_text(content)
    with pytest.raises(kernelbench.FormatError, match=message):
        read(files)


@pytest.mark.parametrize("facts", [{"device": [1]}, {"mean": 10**400}])
def test_a_baseline_of_other_types_is_an_error_and_makes_no_run_that_nobody_can_read(files, facts):
    (files / "eval_results.json").write_text(json.dumps({"19": EVALUATED["19"]}))
    baseline = {"level1": {"19_ReLU.py": {**STATISTICS, **facts}}}
    (files / "baseline_time_torch.json").write_text(json.dumps(baseline))
    with pytest.raises(kernelbench.FormatError, match="that of .*19.* is not as expected"):
        read(files)


@pytest.mark.parametrize(
    "content, message",
    [
        ('{"one": {}}', "'one' is no level"),
        ('{"level1": {"relu": {}}}', "'relu' is no timing"),
        ('{"level1": {"' + "0" * MEGABYTE + 'x": {}}}', "is no timing"),
    ],
    ids=["no level", "no number", "a megabyte of zeros"],
)
def test_a_wrong_baseline_is_an_error(files, content, message):
    (files / "baseline_time_torch.json").write_text(content)
    with in_linear_time(), pytest.raises(kernelbench.FormatError, match=message):
        read(files)


def kb(*arguments):
    return subprocess.run([*KB, *map(str, arguments)], capture_output=True, text=True, timeout=100)


def test_the_commands(files):
    results, out = files / "eval_results.json", files / "run"
    done = kb("import", results, "--level", 1, "--baseline", files / "baseline_time_torch.json", "--out", out)
    assert done.returncode == 0 and "5 result(s)" in done.stdout and "1 of the correct ones without" in done.stdout
    assert kb("export", out, "--to", "csv", "-o", files / "r.csv").returncode == 0
    rows = list(csv.DictReader((files / "r.csv").open()))
    assert len(rows) == 5 and rows[0]["speedup"] == "1.5" and rows[0]["baseline_ms.eager"] == "3.0"
    assert kb("leaderboard", out).returncode == 0 and kb("compare", out, out).returncode == 0
    assert kb("report", out, "-o", files / "report.html").returncode == 0
    for arguments, message in [
        (["import", files / "nowhere", "--level", 1, "--out", files / "x"], "no such file"),
        (["import", results, "--level", 1, "--out", out], "holds a run already"),
        (["export", out, out, "--to", "kernelbench", "-o", files / "x"], "holds one run"),
        (["export", files / "nowhere", "--to", "csv", "-o", files / "x"], "is no run directory"),
    ]:
        done = kb(*arguments)
        assert done.returncode == 2 and message in done.stderr and "Traceback" not in done.stderr


def test_several_levels_need_a_choice(tmp_path):
    both = run(tmp_path / "run", result("1/1", 0.5), result("2/1", 0.5))
    with pytest.raises(exchange.ExchangeError, match="--level"):
        exchange.export([both], "kernelbench", tmp_path / "out.json")
    exchange.export([both], "kernelbench", tmp_path / "out.json", level=2)
    assert list(json.loads((tmp_path / "out.json").read_text())) == ["1"]


def test_parquet_is_written_or_says_what_is_missing(tmp_path):
    made, out = (
        run(tmp_path / "run", result("1/1", 0.5), result("1/2", status=Status.CRASHED)),
        tmp_path / "out.parquet",
    )
    if importlib.util.find_spec("pyarrow") is None:
        with pytest.raises(exchange.ExchangeError, match=r"kernelbench\[parquet\]"):
            exchange.export([made], "parquet", out)
        return
    import pyarrow.parquet

    exchange.export([made], "parquet", out)
    assert pyarrow.parquet.read_table(out).column("status").to_pylist() == ["ok", "crashed"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_a_file_that_parquet_has_no_room_for_stays_as_it_was(tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "out").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left"):
        exchange.export([run(tmp_path / "run", result("1/1", 0.5))], "parquet", tmp_path / "out")
    assert Path("/dev/full").is_char_device() and (tmp_path / "out").is_symlink()


def test_parquet_and_csv_of_a_real_log_say_the_same(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    made = Run.load(Path(__file__).parents[3] / "results" / "h100" / "examples")
    exchange.export([made], "parquet", tmp_path / "r.parquet")
    exchange.export([made], "csv", tmp_path / "r.csv")
    rows = parquet.read_table(tmp_path / "r.parquet").to_pylist()
    lines = list(csv.DictReader((tmp_path / "r.csv").open(newline="")))
    assert lines[0]["verdict"] == "slower" and 0.50 < float(lines[0]["interval.low"]) < float(lines[0]["speedup"])
    assert len(rows) == len(made.latest()) and [r["speedup"] for r in rows] == [r.speedup for r in made.latest()]
    for row, line in zip(rows, lines, strict=True):
        assert {key: "" if value is None else str(value) for key, value in row.items()} == line


def test_a_results_log_of_the_h100_survives_export_and_import(tmp_path):
    original = Run.load(Path(__file__).parents[3] / "results" / "h100" / "examples")
    exchange.export([original], "kernelbench", tmp_path / "e.json", level=1)
    exchange.export([original], "baseline", tmp_path / "baseline_time_torch.json")
    back = kernelbench.read_eval_results(tmp_path / "e.json", 1, tmp_path / "baseline_time_torch.json")
    ours = [r for r in original.latest() if r.problem.startswith("1/")]
    assert [r.status for r in back] == [r.status for r in ours]
    last = {r.problem: r.baselines["eager"]["mean_ms"] for r in ours if r.correct}  # the file has one a problem
    assert last and [r.speedup for r in back if r.correct] == [
        pytest.approx(last[r.problem] / r.timing["mean_ms"]) for r in ours if r.correct
    ]


def test_a_baseline_beside_a_rejected_solution_is_not_taken():
    """It may have been slowed, and the last sample won."""
    honest, rejected = result("1/1", 1.0), result("1/1", 1.0, status=Status.REJECTED, sample=1, baseline_ms=9.0)
    (times,) = kernelbench.baseline([honest, rejected])["level1"].values()
    assert times["mean"] == pytest.approx(1.0, rel=0.1) and kernelbench.baseline([rejected]) == {}


def test_a_baseline_that_failed_beside_a_later_sample_leaves_the_one_that_ran(tmp_path):
    """An entry without times took its place, and `kb import` refused the whole file."""
    ran, failed = sized("1/19", 0.5), sized("1/19", 0.5)
    failed.solution |= {"sample": 1, "name": "other.py"}
    failed.baselines, failed.speedup = {"eager": {"error": "out of memory"}}, None
    _, again = exported(tmp_path, ran, failed)
    assert [result.baselines["eager"]["mean_ms"] for result in again.results] == [ran.baselines["eager"]["mean_ms"]] * 2
    assert kernelbench.baseline([failed]) == {}


def test_a_baseline_file_holds_one_workload_of_a_problem(tmp_path):
    """It was the last one that a sample was evaluated on, whichever that was."""
    results = sized("1/19", 0.5, "small"), sized("1/19", 0.5, "full"), sized("1/19", 0.5, "small")
    (entry,) = kernelbench.baseline(results)["level1"].values()
    assert entry["workload"]["name"] == "small"


@pytest.mark.parametrize("at_once", [True, False])
def test_so_many_results_are_read(tmp_path, monkeypatch, at_once):
    """Entries of one problem were not counted: a file of 6 MB with a million of them took gigabytes."""
    entries = [{**EVALUATED["19"][0], "sample_id": number} for number in range(3)]
    data = {"19": entries} if at_once else {str(number): [entry] for number, entry in enumerate(entries, 1)}
    (tmp_path / "eval_results.json").write_text(json.dumps(data))
    monkeypatch.setattr(kernelbench, "_MOST_ENTRIES", 3)
    assert len(kernelbench.read_eval_results(tmp_path / "eval_results.json", 1)) == 3
    monkeypatch.setattr(kernelbench, "_MOST_ENTRIES", 2)
    with pytest.raises(kernelbench.FormatError, match="has more than 2 results"):
        kernelbench.read_eval_results(tmp_path / "eval_results.json", 1)


def test_a_level_of_which_the_run_has_nothing_is_an_error_and_no_file(tmp_path):
    """The file was written, and empty."""
    both = run(tmp_path / "run", result("1/1", 0.5), result("3/1", 0.5))
    with pytest.raises(exchange.ExchangeError, match="the run has no result of level 2, but of 1, 3"):
        exchange.export([both], "kernelbench", tmp_path / "out.json", level=2)
    assert not (tmp_path / "out.json").exists()


def test_imported_results_of_different_workloads_are_each_whole(tmp_path):
    """The run named both workloads, as if each solution was to be evaluated on both, and none of them counted."""
    results = [sized("1/19", 0.5, "small"), sized("1/20", 0.5, "full")]
    _, again = exported(tmp_path, *results)
    assert [one.problem for one in again.solutions()] == ["1/19", "1/20"] and again.config["workload"] is None


def test_tritonbenchs_figures_are_over_the_problems_that_count(tmp_path):
    """Both accuracies were 1 where one of four problems that were asked for was tried and solved."""
    solved = result("1/1", 0.5)
    solved.correctness = {"allclose": {"passes": True}}
    made = run(tmp_path / "run", solved, problems="1/1-4")
    exchange.export([made], "tritonbench", tmp_path / "out.json")
    figures = json.loads((tmp_path / "out.json").read_text())
    assert figures["problems"] == 4 and figures["execution_accuracy"] == figures["ok"] == 0.25
    (row,) = standings([made])["groups"]["all"]
    assert row["problems"] == 4 and row["solved"] == 1


def test_figures_over_problems_that_cannot_be_found_are_refused(tmp_path):
    """`kb export` asked to report a fault of its own, where `kb leaderboard` said what was missing."""
    made = run(tmp_path / "run", result("1/1", 0.5), problems="all", problem_dir=str(tmp_path / "gone"))
    done = kb("export", made.path, "--to", "tritonbench", "-o", tmp_path / "out.json")
    assert done.returncode == 2 and "no problems in" in done.stderr and "Traceback" not in done.stderr
