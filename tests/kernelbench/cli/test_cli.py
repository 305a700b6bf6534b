"""The command line as a person uses it: real processes, exit statuses, wrong input, interruption."""

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from warm_kb import KB, REAL_KB

from harness.compile.cache import Cache
from harness.timing.convergence import REASONS
from kernelbench.cli import main
from kernelbench.run import Run

H100 = Path(__file__).parents[3] / "results" / "h100"
GOOD = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x): return x.clamp(min=0)\n"
SLOW = GOOD.replace("return", "__import__('time').sleep(100); return")


def kb(*arguments, cwd=None, **keywords):
    return subprocess.run([*KB, *map(str, arguments)], capture_output=True, text=True, cwd=cwd, timeout=300, **keywords)


@pytest.fixture
def solutions(tmp_path):
    folder = tmp_path / "solutions"
    (folder / "level1").mkdir(parents=True)
    (folder / "level1" / "19_relu.py").write_text(GOOD)
    return folder


def evaluate(solutions, out, *more):
    return kb("eval", "--solutions", solutions, "--device", "cpu", "--out", out, "--timeout", 20, *more)


@pytest.mark.parametrize(
    "command",
    [
        ["--help"], ["problems", "list"], ["eval", "--help"], ["baseline", "--help"], ["time", "--help"],
        ["import", "--help"], ["regrade", "--help"],
        ["serve", "--help"], ["solve", "--help"], ["solve", "--list"], ["doctor", "--help"], ["cache"],
        ["leaderboard", str(H100 / "examples")], ["compare", str(H100 / "examples"), str(H100 / "examples")],
        ["time", "--from", str(H100 / "examples"), "1/36"],
    ],
)
def test_help_and_lists_import_no_torch(command):
    code = f"import sys; sys.argv = ['kb', *{command!r}]\nfrom kernelbench.cli import main\n" \
           "try: main()\nfinally: print('torch' in sys.modules, file=sys.stderr)"  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.strip() == "False", done.stderr


@pytest.mark.parametrize(
    "command",
    [
        "eval", "check", "baseline", "time", "leaderboard", "compare", "report", "serve", "import", "export",
        "problems list", "problems show", "starter", "cache", "doctor", "solve",
    ],
)
def test_every_command_shows_an_example(command):
    assert "Example" in kb(*command.split(), "--help").stdout


def test_the_cache_is_shown_and_cleared(tmp_path):
    environment = {**os.environ, "KERNELBENCH_CACHE": str(tmp_path / "cache")}
    cache = Cache(tmp_path / "cache")
    (tmp_path / "built.so").write_bytes(b"x")
    for clear in ("clear", "--clear"):
        cache.put("key", [tmp_path / "built.so"])
        cache.get("key")
        shown = kb("cache", env=environment).stdout
        assert re.search(r"entries +1\n", shown) and re.search(r"saved by them +1\n", shown), shown
        assert "removed 1 entries" in kb("cache", clear, env=environment).stdout
        assert re.search(r"entries +0\n", kb("cache", env=environment).stdout)


def test_a_cache_that_cannot_be_written_stops_the_run_with_what_to_do(tmp_path):
    (tmp_path / "file").touch()
    environment = {**os.environ, "KERNELBENCH_CACHE": str(tmp_path / "file" / "cache")}
    assert "set KERNELBENCH_CACHE to another folder" in kb("cache", env=environment).stderr
    (tmp_path / "level1").mkdir()
    (tmp_path / "level1" / "19_relu.cpp").write_text('extern "C" void solution() {}')
    done = kb("eval", "--solutions", tmp_path, "--device", "cpu", "--out", tmp_path / "run", env=environment)
    assert done.returncode == 3 and "set KERNELBENCH_CACHE to another folder" in done.stdout


@pytest.mark.slow
def test_eval_prints_a_leaderboard_and_keeps_log_markdown_and_json(solutions, tmp_path):
    done = evaluate(solutions, tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert "level1/19_relu.py" in done.stdout and "fast_1.5" in done.stdout and "no GPU is used" in done.stderr
    data = json.loads((tmp_path / "run" / "leaderboard.json").read_text())
    assert data["solved"] == 1 and data["fast_p"]["0"] == 1.0
    assert list(data["fast_p"]) == ["0", "0.5", "0.8", "1", "1.5", "2"]
    assert "| 1/19 relu" in (tmp_path / "run" / "leaderboard.md").read_text()
    (record,) = map(json.loads, (tmp_path / "run" / "results.jsonl").read_text().splitlines())
    assert record["status"] == "ok" and record["device"]["type"] == "cpu" and record["timing"]["samples_ms"]


@pytest.mark.slow
def test_json_on_stdout_is_json(solutions, tmp_path):
    done = evaluate(solutions, tmp_path / "run", "--json")
    assert json.loads(done.stdout)["statuses"] == {"ok": 1}


@pytest.mark.slow
def test_resume_evaluates_only_what_is_missing_or_has_changed(solutions, tmp_path):
    evaluate(solutions, tmp_path / "run")
    (solutions / "level1" / "19_s1.py").write_text(GOOD)
    second = evaluate(solutions, tmp_path / "run", "--resume")
    assert "1 result(s) are in" in second.stderr
    (solutions / "level1" / "19_relu.py").write_text(GOOD.replace("clamp(min=0)", "neg()"))
    evaluate(solutions, tmp_path / "run", "--resume")
    log = (tmp_path / "run" / "results.jsonl").read_text().splitlines()
    assert [json.loads(line)["solution"]["name"] for line in log] == [
        "level1/19_relu.py", "level1/19_s1.py", "level1/19_relu.py",
    ]  # fmt: skip
    data = json.loads((tmp_path / "run" / "leaderboard.json").read_text())
    assert {r["solution"]: r["status"] for r in data["results"]} == {
        "level1/19_relu.py": "wrong_value", "level1/19_s1.py": "ok",
    }  # fmt: skip


@pytest.mark.slow
def test_problems_that_are_selected_count_even_without_a_solution(solutions, tmp_path):
    done = evaluate(solutions, tmp_path / "run", "--problems", "1/19,1/23", "--json")
    assert json.loads(done.stdout)["fast_p"]["0"] == 0.5


def test_a_kernelbench_directory_of_problems_and_solutions_evaluates_as_it_is(tmp_path):
    problems, run = tmp_path / "KernelBench" / "level1", tmp_path / "runs" / "model_x"
    problems.mkdir(parents=True)
    run.mkdir(parents=True)
    module = (
        "import torch\nimport torch.nn as nn\n\nclass Model(nn.Module):\n"
        "    def __init__(self):\n        super(Model, self).__init__()\n"
        "    def forward(self, x: torch.Tensor) -> torch.Tensor:\n        return torch.tanh(x)\n\n"
        "batch_size = 64\ndim = 512\n\ndef get_inputs():\n    x = torch.rand(batch_size, dim)\n    return [x]\n\n"
        "def get_init_inputs():\n    return []\n"
    )
    (problems / "22_Tanh.py").write_text(module)
    candidate = module.replace("class Model(", "class ModelNew(").replace("super(Model,", "super(ModelNew,")
    (run / "level_1_problem_22_sample_0_kernel.py").write_text(candidate)
    (run / "level_1_problem_22_sample_1_kernel.py").write_text(candidate.replace("tanh", "sin"))
    (run / "eval_results.json").write_text("{}")
    done = evaluate(run, tmp_path / "out", "--problem-dir", problems.parent, "--json")
    assert done.returncode == 0, done.stderr
    assert [r["status"] for r in json.loads(done.stdout)["results"]] == ["ok", "wrong_value"]


@pytest.mark.parametrize(
    "arguments, status, message",
    [
        (["--solutions", "nowhere"], 2, "no such directory or file: nowhere"),
        ([], 2, "kb eval --solutions DIR, or kb eval FILE"),
        (["solutions", "--solutions", "solutions"], 2, "kb eval --solutions DIR, or kb eval FILE"),
        (["solutions", "--problem", "1/19"], 2, "solutions is a directory: a problem can be named for one file only"),
        (["relu.py"], 2, "relu.py maps to no problem"),
        (["relu.py", "--problem", "relu"], 2, "not a problem selector"),
        (["--solutions", "empty"], 2, "no solutions in empty"),
        (["--solutions", "solutions", "--problems", "9/9"], 2, "no problem matches '9/9'"),
        (["--solutions", "solutions", "--problems", "relu"], 2, "not a problem selector"),
        (["--solutions", "solutions", "--problem-dir", "empty"], 2, "no problems in empty"),
        (["--solutions", "twice"], 2, "claims 1/19 sample 0, and so does 1_19.py: give each its own sample number"),
        (["--solutions", "solutions", "--device", "cuda:99"], 3, "--device cpu"),
        (["--solutions", "solutions", "--device", "gpu"], 2, "'gpu' is no device; there are: cpu, cuda, cuda:INDEX"),
        (["--solutions", "solutions", "--device", "cuda:x"], 2, "'cuda:x' is no device"),
        (["--solutions", "solutions", "--device", "cpu,cpu"], 3, "names the same device twice"),
        (["--solutions", "solutions", "--address", "auto"], 2, "--address needs --executor ray"),
        (["--solutions", "solutions", "--resume"], 2, "--resume needs --out"),
        (["--solutions", "solutions", "--precision", "fp8"], 2, "fp8"),
        (["--solutions", "solutions", "--timeout", "-3"], 2, "-3"),
        (["--solutions", "solutions", "--out", "/proc/run"], 3, "/proc/run"),
    ],
)
def test_wrong_input_is_one_clear_error(solutions, tmp_path, arguments, status, message):
    import torch

    if "cuda:99" in arguments and torch.cuda.is_available():
        message = "no device cuda:99"
    (tmp_path / "empty").mkdir()
    (tmp_path / "twice").mkdir()
    (tmp_path / "twice" / "1_19.py").write_text(GOOD)
    (tmp_path / "twice" / "1_19.cpp").write_text("")
    (tmp_path / "relu.py").write_text(GOOD)
    done = kb("eval", *arguments, cwd=tmp_path)
    assert done.returncode == status
    assert message in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
def test_files_without_a_problem_and_gpu_solutions_are_listed_not_lost(solutions, tmp_path):
    (solutions / "notes.py").write_text("# nothing")
    (solutions / "9_99.py").write_text(GOOD)
    (solutions / "1_23.cu").write_text("")
    done = evaluate(solutions, tmp_path / "run")
    assert "Files without a problem (2):" in done.stdout
    assert "notes.py: maps to no problem" in done.stdout and "there is no problem 9/99" in done.stdout
    assert "Not evaluated here (1):" in done.stdout and "1_23.cu: cuda solution, needs a GPU" in done.stdout
    assert done.returncode == 0


@pytest.mark.slow
def test_a_file_that_claims_the_place_of_another_is_left_out_and_the_rest_evaluated(tmp_path):
    put = {"1_19.py": GOOD, "1_21_hostile.py": "# kb: problem=1/19 sample=0", "1_23.py": "", "1_23_twice.py": ""}
    (tmp_path / "solutions").mkdir()
    for name, text in put.items():
        (tmp_path / "solutions" / name).write_text(text)
    done = evaluate(tmp_path / "solutions", tmp_path / "run", "--json")
    assert [r["solution"] for r in json.loads(done.stdout)["results"]] == ["1_19.py"], done.stderr
    done = evaluate(tmp_path / "solutions", tmp_path / "run", "--resume")
    assert done.returncode == 0 and "Files without a problem (3):" in done.stdout
    assert "1_21_hostile.py: claims 1/19 sample 0, which is that of 1_19.py" in done.stdout
    assert "1_23.py: claims 1/23 sample 0, and so does 1_23_twice.py" in done.stdout


def test_nothing_to_evaluate_is_wrong_usage_and_says_why(solutions, tmp_path):
    done = evaluate(solutions, tmp_path / "run", "--problems", "1/20")
    assert done.returncode == 2 and "of other problems than the selected ones" in done.stderr
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "relu.py").write_text(GOOD)
    done = evaluate(tmp_path / "s", tmp_path / "run")
    assert done.returncode == 2 and "relu.py: maps to no problem" in done.stderr and not (tmp_path / "run").exists()


@pytest.mark.parametrize("value", ["²", "1,²", "1" * 5000, "0", "99", ""])
def test_what_is_no_class_of_the_red_team_is_wrong_usage(value):
    """A digit that is no number was a traceback, and so was a number of thousands of digits."""
    done = CliRunner().invoke(main, ["redteam", "--class", value])
    assert done.exit_code == 2 and "is not a list of classes from 1 to" in done.output


@pytest.mark.parametrize(
    "arguments",
    [["eval", "--solutions", "s", option, value] for option in ("--timeout", "--memory") for value in ("nan", "inf")]
    + [["check", "--solutions", "s", "--min-speedup", "nan"], ["sol", "1/1", "--clock", "nan"]]
    + [["solve", "--problems", "1/1", "-o", "r", option, "nan"] for option in ("--max-usd", "--max-seconds")],
)
def test_no_number_is_wrong_usage(arguments):
    """A run of `kb solve` with nan as its limit spent without end."""
    done = kb(*arguments)
    assert done.returncode == 2 and re.search("must be a finite number.*, got (nan|inf)", done.stderr), done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["redteam", "--class", "20", "-o"], ["time", "relu.py", "--picture"], ["sol", "1/1", "--out"],
        ["sol", "1/1", "--roofline"], ["report", str(H100 / "examples"), "-o"],
        ["export", str(H100 / "examples"), "--to", "csv", "--out"],
    ],
)  # fmt: skip
def test_a_file_that_has_no_place_is_told_before_the_work(arguments, tmp_path):
    done = kb(*arguments, tmp_path / "nowhere" / "out.png")
    assert done.returncode == 2 and "no folder" in done.stderr and not done.stdout, done.stderr


@pytest.mark.slow
def test_what_a_terminal_has_no_letters_for_is_escaped(tmp_path):
    """A message in Chinese ended a run with a traceback, and a gate with no verdict."""
    (tmp_path / "1_19.py").write_text("raise RuntimeError('\\u4e2d')", encoding="utf-8")
    command = [*REAL_KB, "try", str(tmp_path / "1_19.py"), "--device", "cpu", "--no-server"]
    done = subprocess.run(command, capture_output=True, env=os.environ | {"PYTHONIOENCODING": "latin-1"})
    assert done.returncode == 1 and b"RuntimeError: \\u4e2d" in done.stdout, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_keeps_nothing_from_being_evaluated(tmp_path, closed):
    """Without standard error nothing was, and sockets of the judge got the numbers of closed streams."""
    (tmp_path / "1_19.py").write_text("raise SystemExit(0)")
    command = f"{shlex.join(REAL_KB)} eval --solutions {tmp_path} --device cpu -o {tmp_path / 'run'} {closed}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    assert len((tmp_path / "run" / "results.jsonl").read_text().splitlines()) == 1


@pytest.mark.slow
def test_who_starts_it_may_ignore_the_ends_of_children(tmp_path):
    """The process that forks workers died of it, and the run did not end."""
    (tmp_path / "1_19.cpp").write_text("#include <missing.h>")
    (tmp_path / "1_20.py").write_text(GOOD)
    command = [*REAL_KB, "eval", "--solutions", str(tmp_path), "--device", "cpu", "-o", str(tmp_path / "run")]
    ignores = "import os, signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN)"
    starts = f"{ignores}; os.execv({command[0]!r}, {command!r})"
    done = subprocess.run([sys.executable, "-c", starts], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    results = [json.loads(line) for line in (tmp_path / "run" / "results.jsonl").read_text().splitlines()]
    assert {one["status"] for one in results} == {"build_error", "wrong_value"}


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["eval", "--help"], ["problems", "list"]])
def test_output_that_nobody_reads_is_no_verdict(arguments):
    """It ended with 1, as a gate that fails."""
    receiver, sender = os.pipe()
    os.close(receiver)
    with open(sender, "w") as nobody:
        done = subprocess.run([*REAL_KB, *arguments], stdout=nobody, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 3 and done.stderr == ""


@pytest.mark.parametrize(("option", "value"), [("--timeout", "1e15"), ("--memory", "1e300"), ("--timeout", "0")])
def test_a_number_beyond_what_clocks_and_counters_hold_is_wrong_usage(tmp_path, option, value):
    """The judge failed, and asked to be reported."""
    done = kb("eval", "--solutions", str(tmp_path), option, value)
    assert done.returncode == 2 and f"{value} is no number" in done.stderr and "1e+09" in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_output_that_cannot_be_written_is_no_verdict():
    """It ended with 1, as a gate that fails."""
    with open("/dev/full", "w") as full:
        done = subprocess.run([*REAL_KB, "problems", "list", "1/1"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 3
    assert done.stderr == "error: standard output cannot be written: No space left on device\n"


def test_the_names_of_files_in_wrong_usage_drive_no_terminal():
    for arguments in (["serve", "a", "b\x1b]0;title\x07"], ["serve", "\x1b[2J"], ["\x1b[2J"]):
        done = kb(*arguments)
        assert done.returncode == 2 and "\x1b" not in done.stderr and r"\x1b" in done.stderr, arguments


@pytest.mark.parametrize("arguments", [["leaderboard"], ["review"], ["try"], ["eval", "--solutions"]])
def test_a_name_that_no_file_system_takes_is_wrong_usage(arguments):
    done = kb(*arguments, "x" * 5000)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "File name too long" in done.stderr or "no such file" in done.stdout


def test_an_error_that_nobody_foresaw_drives_no_terminal_and_is_no_verdict():
    """The text of a candidate may be in it; its status was that of a gate that fails."""
    code = "from kernelbench.cli import main\nfrom kernelbench.cli.machine import cache\n"
    code += "def fails(**_): raise ValueError('\\x1b[2J::error::x')\ncache.command.callback = fails\nmain(['cache'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 3 and "please report this" in done.stderr
    assert "Traceback" in done.stderr and r"ValueError: \x1b[2J" in done.stderr
    assert "\x1b" not in done.stderr


WRITING = ["eval", "check", "solve", "baseline", "report", "import", "export", "problems audit", "starter", "sol",
           "redteam"]  # fmt: skip
WITH_FIGURES = ["eval", "check", "time", "solve", "baseline", "leaderboard", "compare", "problems list",
                "problems audit", "sol", "findings", "review", "redteam", "cache", "doctor"]  # fmt: skip
WITH_A_DEVICE = ["eval", "check", "time", "solve", "baseline", "problems audit", "redteam", "doctor"]


def options_of(name):
    found = main
    for word in name.split():
        found = found.get_command(None, word)
    return {option: parameter for parameter in found.params for option in parameter.opts}


def test_options_are_spelled_one_way_everywhere():
    assert all({"-o", "--out"} <= set(options_of(name)) and "--output" not in options_of(name) for name in WRITING)
    assert all("--json" in options_of(name) for name in WITH_FIGURES)


@pytest.mark.parametrize("name", WITH_A_DEVICE)
def test_a_wrong_name_of_a_device_is_wrong_usage_before_anything_runs(name):
    option = options_of(name)["--device"]
    for wrong in ("gpu", "tpu", "cuda:", "cuda:x", "CPU", ""):
        with pytest.raises(click.BadParameter, match="is no device; there are: cpu, cuda, cuda:INDEX"):
            option.type_cast_value(click.Context(main), wrong)
    assert option.type_cast_value(click.Context(main), "cuda:99") == "cuda:99"


@pytest.mark.parametrize(
    "command",
    [
        ["leaderboard", H100 / "examples"], ["compare", H100 / "examples", H100 / "examples"], ["doctor"], ["cache"],
        ["problems", "list", "1/19"], ["time", "--from", H100 / "examples", "1/36"],
    ],
)  # fmt: skip
def test_json_is_all_that_is_printed(command):
    assert json.loads(kb(*command, "--json").stdout)


@pytest.mark.slow
def test_one_file_evaluates_like_a_directory(tmp_path):
    (tmp_path / "relu.py").write_text(GOOD)
    done = kb("eval", "relu.py", "--problem", "1/19", "--device", "cpu", "--out", "run", "--json", cwd=tmp_path)
    (row,) = json.loads(done.stdout)["results"]
    assert (row["problem"], row["solution"], row["status"]) == ("1/19", "relu.py", "ok"), done.stderr
    run = Run.load(tmp_path / "run")
    assert run.config["solutions"] == "." and list((run.path / "sources").iterdir())
    again = kb(
        "eval", tmp_path / "relu.py", "--problem", "1/19", "--device", "cpu", "-o", "run", "--resume", cwd=tmp_path
    )
    assert "1 result(s) are in" in again.stderr and len(Run.load(run.path).results) == 1, again.stderr


@pytest.mark.slow
def test_the_first_commands_of_the_help_work_where_nothing_but_the_package_is(tmp_path):
    shown = [line.partition("#")[0].split() for line in kb("--help").stdout.splitlines() if line.startswith("    kb ")]
    assert [words[1] for words in shown] == ["doctor", "starter", "eval"]
    for words in shown:
        done = kb(*words[1:], cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert re.search(r"1/19 relu +level1/19_relu\.\w+ ", done.stdout) and "Not evaluated" not in done.stdout


def test_a_leaderboard_and_an_export_of_a_run_that_has_nothing_yet(tmp_path):
    Run.create(tmp_path / "run", {"solutions": "s"})
    done = kb("leaderboard", tmp_path / "run")
    assert done.returncode == 2 and "no results yet" in done.stderr, done.stderr
    done = kb("export", tmp_path / "run", "--to", "csv", "-o", tmp_path / "r.csv")
    assert done.returncode == 2 and "no result in" in done.stderr and not (tmp_path / "r.csv").exists(), done.stderr


def test_nothing_that_can_run_here_is_status_3(tmp_path):
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "1_23.cu").write_text("")
    assert evaluate(tmp_path / "s", tmp_path / "run").returncode == 3


@pytest.mark.slow
def test_without_a_compiler_the_candidate_is_not_blamed(solutions, tmp_path):
    (solutions / "level1" / "19_relu_s1.cpp").write_text("")
    empty = tmp_path / "bin"
    empty.mkdir()
    environment = {**os.environ, "PATH": str(empty), "CXX": ""}
    done = kb("eval", "--solutions", solutions, "--device", "cpu", "--out", tmp_path / "run", env=environment)
    assert done.returncode == 3 and "no C++ compiler: install g++" in done.stdout
    assert "Not evaluated here (1):" in done.stdout and re.search(r"19_relu.py .* ok ", done.stdout)


def test_a_broken_reference_is_told_and_not_a_result(tmp_path):
    problems, run = tmp_path / "P" / "level1", tmp_path / "s"
    problems.mkdir(parents=True)
    run.mkdir()
    (problems / "1_bad.py").write_text("raise ValueError('no good')")
    (run / "1_1.py").write_text(GOOD)
    done = evaluate(run, tmp_path / "out", "--problem-dir", problems.parent)
    assert done.returncode == 3 and "does not load: ValueError: no good" in done.stdout
    assert (tmp_path / "out" / "results.jsonl").read_text() == ""


def processes_of(mark: str) -> list[str]:
    """Process numbers of those on this machine whose environment has ``mark``, which children inherit."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if mark.encode() in path.read_bytes():
                found.append(path.parent.name)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("with_signal", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_run_keeps_what_was_finished_and_leaves_nothing_running(
    solutions, tmp_path, request, with_signal
):
    (solutions / "level1" / "19_s1.py").write_text(SLOW)
    out = tmp_path / "run"
    command = [*REAL_KB, "eval", "--solutions", solutions, "--device", "cpu", "--out", out]
    command += ["--jobs", "1"]  # built one after the other, so evaluated in this order
    mark = f"LC_MESSAGES={tmp_path}"
    command = ["env", mark, *map(str, command)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    request.addfinalizer(process.kill)
    deadline = time.monotonic() + 120
    log = out / "results.jsonl"
    while time.monotonic() < deadline and not (log.exists() and log.read_text()):
        time.sleep(0.1)
    assert json.loads(log.read_text())["solution"]["name"] == "level1/19_relu.py"
    time.sleep(1)  # well into the second candidate
    assert len(processes_of(mark)) >= 3  # this one, a judge, a worker
    process.send_signal(with_signal)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == (-signal.SIGKILL if with_signal == signal.SIGKILL else 130)
    if with_signal != signal.SIGKILL:
        assert "Continue with --resume" in errors and "Traceback" not in errors
    deadline = time.monotonic() + 10
    while processes_of(mark) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not processes_of(mark)

    (solutions / "level1" / "19_s1.py").write_text(GOOD)
    done = evaluate(solutions, out, "--resume", "--json")
    assert "1 result(s) are in" in done.stderr
    assert json.loads(done.stdout)["statuses"] == {"ok": 2}


def test_show_prints_source_sizes_work_and_signature():
    done = kb("problems", "show", "1/95")
    assert done.returncode == 0
    for text in ("class Model(nn.Module)", "FLOPs", "const int64_t* targets", "size_t num_classes", "Shortcuts"):
        assert text in done.stdout


def test_unknown_problems_are_wrong_usage():
    for command in (["problems", "show", "1/999"], ["starter", "nineteen"], ["problems", "list", "9/1"]):
        done = kb(*command)
        assert done.returncode == 2 and "Traceback" not in done.stderr


def test_doctor_says_what_can_run_here():
    done = kb("doctor")
    assert done.returncode == 0
    assert "C++ compiler" in done.stdout and "yes  C++ (.cpp), on the CPU" in done.stdout


def test_doctor_without_tools_says_how_to_fix_it(tmp_path):
    environment = {**os.environ, "PATH": str(tmp_path), "CXX": "", "CUDA_HOME": str(tmp_path)}
    done = kb("doctor", env=environment)
    assert "install g++ or clang++" in done.stdout


def test_python_is_enough_to_find_kb():
    script = shutil.which("kb", path=os.path.dirname(sys.executable))
    assert script, "the console script is not installed beside the interpreter"


def test_leaderboard_and_compare_read_any_run():
    done = kb("leaderboard", H100 / "examples", H100 / "references", "--format", "json")
    groups = json.loads(done.stdout)["groups"]
    assert {row["run"]: row["problems"] for row in groups["all"]} == {"references": 250, "examples": 250}
    done = kb("compare", H100 / "references", H100 / "references")
    assert done.returncode == 0 and done.stdout.rstrip().endswith("9 unstable, 241 tie")


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["leaderboard"], "RUN"),
        (["leaderboard", "nowhere"], "nowhere is no run directory"),
        (["leaderboard", str(H100 / "examples"), "--problems", "relu"], "not a problem selector"),
        (["leaderboard", str(H100 / "examples"), "--format", "html"], "html"),
        (["compare", str(H100 / "examples"), "nowhere"], "nowhere is no run directory"),
    ],
)
def test_views_of_wrong_input_are_one_clear_error(arguments, message):
    done = kb(*arguments)
    assert done.returncode == 2 and message in done.stderr and "Traceback" not in done.stderr


def test_text_that_no_file_takes_loses_nothing(tmp_path):
    """Half a surrogate pair in a message, file names that are not UTF-8."""
    folder = tmp_path / "solutions"
    folder.mkdir()
    half = GOOD.replace("return", "raise ValueError('half: \\ud800'); return")
    (folder / os.fsdecode(b"odd\xff.py")).write_text("# kb: problem=1/19\n" + half)
    (folder / os.fsdecode(b"lost\xff.py")).write_text(GOOD)
    done = evaluate(folder, tmp_path / "run")
    assert done.returncode == 0 and "half: \\ud800" in done.stdout and "maps to no problem" in done.stdout, done.stderr
    assert "odd&#92;udcff.py" in (tmp_path / "run" / "leaderboard.md").read_text(encoding="utf-8")
    for command in (["leaderboard"], ["export", "--to", "csv", "-o", tmp_path / "r.csv"],
                    ["report", "-o", tmp_path / "r.html"]):  # fmt: skip
        done = kb(*command, tmp_path / "run")
        assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_the_target_of_convergence_is_in_the_record_and_the_clock_of_the_bounds_in_the_run(solutions, tmp_path):
    evaluate(solutions, tmp_path / "run", "--cv", "90%", "--clock", "mucutlass")
    run = Run.load(tmp_path / "run")
    (result,) = run.results
    assert run.config["clock_mhz"] == 1500.0
    assert "was 1500.0 and is None" in evaluate(solutions, tmp_path / "run", "--resume").stderr
    assert result.timing["cv_target"] == result.baselines["eager"]["cv_target"] == 0.9
    assert result.timing["stopped"] in REASONS
