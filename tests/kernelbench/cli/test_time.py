"""Everything about one solution's timing on a page: from an evaluation, from a log, with counters of Nsight Compute."""

import json
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from logs import result, run, timing
from warm_kb import KB

from harness.job import encode_problem, encode_solution
from harness.problem.module import ProblemId
from harness.result import Status
from harness.solution.discover import read_solution
from kernelbench import suite
from kernelbench.machine import ncu
from kernelbench.run import Run
from kernelbench.views import timing_text
from kernelbench.views.plotting import PictureError

H100 = Path(__file__).parents[3] / "results" / "h100"
GOOD = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x): return x.clamp(min=0)\n"


def kb(*arguments, **keywords):
    command = [*KB, "time", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, **keywords)


def on_a_gpu():
    """A record as an H100 gives it."""
    made = result("1/36", 0.1, baseline_ms=0.2)
    made.device = {"type": "cuda", "name": "NVIDIA H100 80GB HBM3"}
    made.timing |= {
        "method": "cuda_events", "cache": "cold", "criterion": "sem", "stopped": "converged", "stability": "stable",
        "queue_full": True, "interrupted_rounds": 2, "calls_a_round": 3, "rounds": 17, "throttled_samples": 3,
        "cv": 0.0123, "sem": 0.003, "q1_ms": 0.099, "q3_ms": 0.101, "median_ms": 0.1, "launch_bound_ms": 0.13,
        "cross_check": {"call_ms": 0.097, "calls": 40, "queue_held": True, "overhead_ms": 0.01},
        "profile": {"span_ms": 0.104, "launches": 3, "kernels": [
            {"name": "void reduce<float>(float*)", "launches": 2, "ms": 0.06, "registers": 32, "shared_bytes": 2048,
             "grid": [132, 1, 1], "block": [256, 1, 1]},
            {"name": "memcpy", "launches": 1, "ms": 0.02, "registers": 0, "shared_bytes": 0, "grid": [], "block": []},
        ]},
    }  # fmt: skip
    made.baselines["eager"] |= {
        "paired": True, "speedup": 2.0, "interval": [1.9, 2.1], "verdict": "faster", "alone_ms": 0.199,
    }  # fmt: skip
    made.baselines["stored compile"] = timing(0.15) | {
        "paired": False, "file": "results/h100/baselines.jsonl", "measured": "2026-11-20T10:00:00+00:00",
        "speedup": 1.5, "interval": [1.4, 1.6], "verdict": "faster",
    }  # fmt: skip
    made.baselines["compile-cudagraphs"] = {"error": "TypeError: no graph\nmore"}
    made.conditions = {
        "matmul_fp32": "ieee", "observations": 9, "throttled": ["sw_power_cap"], "bandwidth_fraction": [0.88, 0.87],
        **{key: {"min": 1, "median": 2, "max": 3}
           for key in ("sm_clock_mhz", "memory_clock_mhz", "power_w", "temperature_c")},
    }  # fmt: skip
    made.sol = {
        "t_sol_ms": 0.05, "t_floor_ms": 0.04, "percent_of_sol": 50.0, "bottleneck": "memory", "compute_share": 0.1,
        "bandwidth_share": 0.5,
    }  # fmt: skip
    made.gflops, made.gbps, made.stages_s = 1000.0, 1500.0, {"check": 1.0, "time": 3.0}
    return made


def test_the_page_says_which_condition_ended_sampling():
    made = on_a_gpu()
    assert "converged (sem)" in timing_text.page(made)  # a record of a time with several rules
    del made.timing["criterion"]
    for stopped, said in {"cv_settled": "CV settled", "max_seconds": "at the ceiling in time"}.items():
        made.timing["stopped"] = stopped
        assert said in timing_text.page(made)


def test_a_page_says_what_each_witness_saw_and_how_far_apart_they_are():
    text = timing_text.page(on_a_gpu())
    assert re.search(r"CUPTI: .* 104 us +\+4.0 %", text) and re.search(r"judge's own clock, 40 .* 97 us +-3.0 %", text)
    assert re.search(r"launch included, hot +130 us +\+30.0 %", text) and re.search(r"eager once more.* 199 us", text)


def test_a_page_says_that_the_judge_timed_a_solution_that_waits_for_the_device():
    waits = on_a_gpu()
    clock = {"call_ms": 0.1, "calls": 64, "queue_held": False, "penalty_ms": 0.02}
    waits.timing |= {"queue_full": False, "cross_check": clock}
    assert "launches count, and this is its time" in timing_text.page(waits)


def test_a_page_says_that_the_judges_clock_added_to_a_time():
    slower = on_a_gpu()
    slower.timing["cross_check"] |= {"penalty_ms": 0.02}
    assert "20 us were added to agree" in timing_text.page(slower)
    assert "added" not in timing_text.page(on_a_gpu())


def test_a_page_has_verdicts_kernels_clocks_bounds_and_stages():
    text = timing_text.page(on_a_gpu())
    assert "2.000x over eager [1.900, 2.100]: faster" in text
    assert "1.500x over stored compile" in text and "not in turn: measured 2026-11-20" in text
    assert "compile-cudagraphs, which did not run: TypeError: no graph\n" in text
    assert re.search(r"void reduce<float>\(float\*\) +2 +60 us +75.0 % +32 +2.0 KiB +132x1x1 +256x1x1", text)
    assert "3 launches; 24 us of the call in none" in text
    assert "kept full, 2 rounds left out" in text
    assert "throttled     sw_power_cap; 3 calls under it" in text and "SM clock      2 MHz (1 to 3)" in text
    assert "copies        88 % and 87 % of the data sheet's bandwidth" in text
    assert "t_SOL 50 us, floor 40 us" in text and "50.0 % of it; bound by memory" in text
    assert re.search(r"time +3.00 s  █{36}\n?", text)


def test_bars_of_a_page_have_a_greatest_length():
    """A record of one kilobyte took a page of 48 million characters, and another all of the memory."""
    made = on_a_gpu()
    made.stages_s = {"check": 1e6, "time": -999_999.0}
    assert max(map(len, timing_text.page(made).splitlines())) < 200


def test_a_page_says_in_how_many_rounds_launches_count():
    made = on_a_gpu()
    made.timing |= {"queue_full": False, "underfull_rounds": 5}
    assert "not full in 5 of 17 rounds: launches count" in timing_text.page(made)


def test_a_page_of_every_record_of_a_real_log():
    results = Run.load(H100 / "examples").results
    pages = [timing_text.page(one) for one in results]
    assert len(pages) == 26
    for one, text in zip(results, pages):
        assert one.problem in text and f"status   {one.status}" in text
        assert not one.correct or "Calls of the solution" in text or "holds no samples" in text


def test_a_histogram_counts_every_sample_and_sets_outliers_apart():
    text = timing_text.histogram([1.0 + 0.01 * (i % 10) for i in range(100)] + [50.0, 60.0])
    counts = [int(line.split()[-1]) for line in text.splitlines()[:-1]]
    assert sum(counts) == 100 and text.splitlines()[-1].split() == ["above", "2,", "up", "to", "60", "ms"]
    assert timing_text.histogram([2.0] * 30) == "all 30 between 2 ms and 2 ms"


def test_a_sparkline_follows_the_values_and_fits_its_width():
    assert timing_text.sparkline([1, 2, 3, 8], 1, 8) == "▁▂▃█"
    assert len(timing_text.sparkline(list(range(1000)), 0, 999)) <= 78
    assert timing_text.sparkline([5, 5], 5, 5) == "▁▁"


@pytest.fixture
def solution(tmp_path):
    path = tmp_path / "kernel.py"
    path.write_text(GOOD)
    return path


@pytest.mark.slow
def test_a_solution_is_evaluated_and_shown_and_drawn(solution, tmp_path):
    done = kb(solution, "--problem", "1/19", "--device", "cpu", "--ncu", "--picture", tmp_path / "t.png")
    assert done.returncode == 0, done.stderr
    for part in ("status   ok", "over eager [", "Calls of the solution", "judge's own clock", "perf_counter_ns",
                 "not taken: ncu needs a GPU", "check"):  # fmt: skip
        assert part in done.stdout, done.stdout
    assert (tmp_path / "t.png").read_bytes().startswith(b"\x89PNG")


def test_wrong_input_is_one_clear_error(solution, tmp_path):
    made = run(tmp_path / "run", result("1/19", 1.0), result("1/19", 2.0, sample=1))
    cases = {
        (solution,): "problem",
        (tmp_path / "none.py", "--problem", "1/19"): "cannot be read",
        (solution, "--problem", "1/999"): "no problem matches",
        (solution, "--problem", "1/19", "--workload", "x", "--device", "cpu"): "no workload 'x'; it has: full",
        ("--from", made.path, "1/2"): "has no result of '1/2'",
        ("--from", made.path, "1/19"): "has 2 results of '1/19'",
        ("--from", made.path, "1/19", "--ncu"): "--ncu and --sanitize run a solution",
    }
    for arguments, message in cases.items():
        done = kb(*arguments)
        assert done.returncode == 2 and message in done.stderr and "Traceback" not in done.stderr, done.stderr


def test_a_result_of_a_run_is_shown_without_an_evaluation(tmp_path):
    made = run(tmp_path / "run", result("1/19", 1.0), result("1/20", status=Status.WRONG_VALUE, message="off"))
    assert "Calls of the solution" in kb("--from", made.path, "1/19").stdout
    failed = kb("--from", made.path, "1/20", "--picture", tmp_path / "t.png")
    assert failed.returncode == 3 and "was not timed (wrong_value)" in failed.stderr
    assert json.loads(kb("--from", made.path, "1/20", "--json").stdout)["message"] == "off"


WIDE = """==PROF== Connected to process 4242 (/usr/bin/python3.12)
==PROF== Profiling "relu" - 0: 0%....50%....100% - 1 pass
a line, that the program "prints"
==PROF== Disconnected from process 4242
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC",\
"dram__throughput.avg.pct_of_peak_sustained_elapsed","gpu__time_duration.sum","launch__registers_per_thread",\
"lts__throughput.avg.pct_of_peak_sustained_elapsed","sm__throughput.avg.pct_of_peak_sustained_elapsed",\
"sm__warps_active.avg.pct_of_peak_sustained_active"
"","","","","","","","","","","","%","ns","register/thread","%","%","%"
"0","4242","python3.12","127.0.0.1","relu(float *, int)","1","7","(256, 1, 1)",\
"(132, 1, 1)","0","9.0","90.5","1,000","16",\
"40.0","10.0","80.0"
"1","4242","python3.12","127.0.0.1","relu(float *, int)","1","7","(256, 1, 1)",\
"(132, 1, 1)","0","9.0","60.5","3,000","16",\
"20.0","30.0","n/a"
"2","4242","python3.12","127.0.0.1","sum(float *)","1","7","(256, 1, 1)",\
"(1, 1, 1)","0","9.0","1","9,000","32","2","3","4"
"""
LONG = """"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size",\
"Grid Size","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"
"0","1","p","h","relu(float *, int)","1","7","(1, 1, 1)","(1, 1, 1)","0","9.0","Command line profiler metrics",\
"gpu__time_duration.sum","ns","4,000"
"0","1","p","h","relu(float *, int)","1","7","(1, 1, 1)","(1, 1, 1)","0","9.0","Command line profiler metrics",\
"launch__registers_per_thread","register/thread","16"
"0","1","p","h","relu(float *, int)","1","7","(1, 1, 1)","(1, 1, 1)","0","9.0","Command line profiler metrics",\
"some__other.sum","","(!) n/a"
"""


FORGED = '"ID","Kernel Name","gpu__time_duration.sum"\n"0","mine","1"'
WRITES_A_LOG = f"""import sys
from pathlib import Path
Path(sys.argv[sys.argv.index("--log-file") + 1]).write_text({LONG!r})"""


def test_a_gpu_that_does_not_tell_of_throttling_has_no_such_figure():
    timed = on_a_gpu()
    del timed.conditions["throttled"]
    assert "throttled     not observed" in timing_text.page(timed)


def test_counters_are_read_and_launches_of_one_kernel_taken_together():
    total, relu = ncu.by_kernel(ncu.read(WIDE))
    assert (total["name"], total["launches"], total["ns"]) == ("sum(float *)", 1, 9000)
    assert relu["launches"] == 2 and relu["ns"] == 4000 and relu["registers"] == 16
    assert relu["dram_percent"] == pytest.approx((90.5 + 3 * 60.5) / 4) and relu["occupancy_percent"] == 80
    assert ncu.read(LONG) == [{"name": "relu(float *, int)", "ns": 4000, "registers": 16}]
    text = timing_text.page(on_a_gpu(), ncu.by_kernel(ncu.read(WIDE)))
    assert re.search(r"relu\(float \*, int\) +2 +4 us +25.0 % +68.0 % +25.0 % +80.0 % +16", text)


@pytest.mark.parametrize(("unit", "ns"), [("ns", 1000), ("us", 1_000_000), ("second", 1e12)])
def test_counters_of_a_raw_page_have_the_units_of_its_second_line(unit, ns):
    first, *_ = ncu.read(WIDE.replace('"%","ns"', f'"%","{unit}"'))
    assert (first["ns"], first["registers"], first["dram_percent"]) == (ns, 16, 90.5)


@pytest.mark.parametrize(
    ("printed", "message"),
    [
        ("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission", "administrators .*NVreg_RestrictProfiling"),
        ("ValueError: no\n==WARNING== No kernels were profiled.", "no kernel; it says:(.|\n)*ValueError: no"),
        ("\n".join(WIDE.splitlines()[:6]), "no kernel"),
    ],
)
def test_why_there_are_no_counters_is_said(printed, message):
    with pytest.raises(ncu.NsightError, match=message):
        ncu.read(printed)


def test_ncu_is_run_over_the_solution_and_its_absence_said(solution, tmp_path, monkeypatch):
    (file,) = suite.find("1/19")
    arguments = (file, read_solution(solution, problem=ProblemId(1, 19)), "small", "fp32", "cuda")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "none"))
    monkeypatch.setattr(ncu, "_PLACES", ())
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(ncu.NsightError, match="install Nsight Compute"):
        ncu.counters(*arguments)
    program = tmp_path / "bin" / "ncu"  # a program in its place, which says what it was asked to do
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\nimport sys\nprint(sys.argv)\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    with pytest.raises(ncu.NsightError, match="harness.worker.profile_target.*kernel.py.*1/19"):
        ncu.counters(*arguments)
    program.write_text(f"#!{sys.executable}\n{WRITES_A_LOG}\nprint({FORGED!r})\n")
    (kernel,) = ncu.counters(*arguments)
    assert (kernel["name"], kernel["ns"]) == ("relu(float *, int)", 4000)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kernel"), [("1_19.py", GOOD), ("1_19.cpp", None)])
def test_what_ncu_watches_runs_by_itself(tmp_path, examples, name, kernel):
    path = tmp_path / name
    path.write_text(kernel or (examples / "cpp" / "relu.cpp").read_text())
    solution = read_solution(path, problem=ProblemId(1, 19))
    job = {"problem": encode_problem(suite.find("1/19")[0]), "solution": encode_solution(solution),
           "workload": "small", "precision": "fp32", "device": "cpu"}  # fmt: skip
    command = [sys.executable, "-m", "harness.worker.profile_target", json.dumps(job)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[3])
    assert done.returncode == 0, done.stderr


@pytest.mark.gpu
def test_counters_of_a_real_kernel(solution):
    (file,) = suite.find("1/19")
    try:
        (kernel,) = ncu.counters(file, read_solution(solution, problem=file.id), "small", "fp32", "cuda")
    except ncu.NsightError as error:
        pytest.skip(str(error))
    assert kernel["launches"] == 1 and kernel["ns"] > 0 and 0 < kernel["dram_percent"] <= 100


def test_names_of_others_are_drawn_as_they_are(tmp_path, monkeypatch):
    """They were formulas, nested as deep as one likes; and a file in the folder, a run's perhaps, chose who draws."""
    pytest.importorskip("matplotlib")
    from kernelbench.views.timing_plot import draw

    (tmp_path / "matplotlibrc").write_text("text.usetex: True\n")
    monkeypatch.chdir(tmp_path)
    made = result("1/1", 1.0)
    for name in (r"$\no$", "$" + r"\sqrt{" * 200 + "1" + "}" * 200 + "$"):
        made.baselines[name] = dict(made.baselines["eager"])
    draw(made, tmp_path / "t.svg")
    assert (tmp_path / "t.svg").stat().st_size


def test_names_of_others_are_cut_where_they_are_drawn(tmp_path):
    """A record may hold texts of megabytes: 128,000 characters took 30 s."""
    pytest.importorskip("matplotlib")
    from kernelbench.views.timing_plot import draw

    made = result("1/1", 1.0)
    long = "A" * 5000
    made.problem_name = made.solution["name"] = made.workload["name"] = made.device["name"] = long
    made.baselines[long] = dict(made.baselines["eager"])
    draw(made, tmp_path / "t.svg")
    assert (tmp_path / "t.svg").read_text().count("<use ") < 1000


def test_times_that_hardly_differ_are_drawn(tmp_path):
    """Times of which a candidate says that they are 1e11 ms differ by less than a number's last digits."""
    pytest.importorskip("matplotlib")
    from kernelbench.views.timing_plot import draw

    made = result("1/1", 1.0)
    made.timing |= {"median_ms": 1e11, "samples_ms": [1e11 + (2e-5 if i % 9 == 0 else 0) for i in range(51)]}
    draw(made, tmp_path / "t.png")
    assert (tmp_path / "t.png").stat().st_size


def test_what_was_not_timed_has_no_picture(tmp_path):
    from kernelbench.views.timing_plot import draw

    with pytest.raises(PictureError, match="nothing to draw"):
        draw(result("1/1", status=Status.TIMEOUT), tmp_path / "t.png")
