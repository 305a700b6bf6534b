"""Every exploit works: it fools a checker that does what most do. What fools nobody would prove nothing."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from harness.solution.discover import read_solution
from kernelbench import suite
from kernelbench.redteam.catalogue import BY_NAME, CLASSES, EXPLOITS, FOLDER, HONEST, files

LIMIT_S = 30
HANGING_S = 4
FASTER = 1.25
ATTEMPTS = 8


@pytest.fixture(scope="module")
def naive():
    command = [sys.executable, str(Path(__file__).with_name("naive.py"))]
    environment = os.environ | {"KB_REDTEAM_API_KEY": "what no candidate may know"}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        yield process
        process.stdin.close()


def checked(naive, folder, problem, solution, limit_s):
    """What the checker printed, and whether it was still at it after ``limit_s``."""
    places = {"HOME": str(folder), "TMPDIR": str(folder), "XDG_CACHE_HOME": os.environ["XDG_CACHE_HOME"]}
    request = {"problem": str(problem), "solution": str(solution), "env": places, "folder": str(folder)}
    naive.stdin.write(json.dumps(request) + "\n")
    naive.stdin.flush()
    parent = int(naive.stdout.readline())
    deadline = time.monotonic() + limit_s
    while os.path.exists(f"/proc/{parent}") and time.monotonic() < deadline:
        time.sleep(0.02)
    late = os.path.exists(f"/proc/{parent}")
    with contextlib.suppress(ProcessLookupError):
        os.killpg(parent, signal.SIGKILL)
    return (folder / "output").read_text(), late


@pytest.mark.slow
@pytest.mark.parametrize("name", BY_NAME)
def test_an_exploit_fools_a_naive_checker(name, naive, tmp_path, monkeypatch):
    exploit, path = BY_NAME[name], FOLDER / EXPLOITS / name
    language = read_solution(path).language
    if (language == "triton" or "torch.cuda" in path.read_text()) and not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    if path.suffix == ".cu":
        pytest.skip("the naive checker builds no CUDA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    told = []
    for attempt in range(ATTEMPTS):  # its clock sees what else this machine does
        folder = tmp_path / str(attempt)
        folder.mkdir()
        result, output = outcome(naive, exploit, path, folder)
        if result[exploit.fools]:
            return
        told.append(output)
    pytest.fail("\n".join(told))


def outcome(naive, exploit, path, folder):
    """What became of the checker, by each of the ways to be fooled; and what it printed."""
    problem = folder / "problem.py"
    shutil.copy(suite.find(str(read_solution(path).problem))[0].path, problem)
    output, late = checked(naive, folder, problem, path, HANGING_S if exploit.fools == "hangs" else LIMIT_S)
    lines = [line for line in output.splitlines() if line.startswith("{")]
    verdict, status_0 = json.loads(lines[0]) if lines else {}, "exit status 0" in output
    traces = exploit.traces() if exploit.traces else []
    if exploit.number == 44 and problem.stat().st_mtime == 1:
        traces = ["the problem's file"]
    result = {
        "correct": verdict.get("correct"),
        "faster": verdict.get("correct") and verdict["speedup"] > FASTER,
        "dies": not status_0 and not late,
        "silent": status_0 and not verdict,
        "traces": traces,
        "hangs": late,
    }
    return result, output


def test_every_class_has_a_program_and_every_program_a_class():
    names = {path.name for path in files(EXPLOITS, set(CLASSES))}
    assert names == set(BY_NAME)
    assert {exploit.number for exploit in BY_NAME.values()} == set(CLASSES)
    assert files(HONEST, set(CLASSES))
