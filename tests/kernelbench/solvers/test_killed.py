"""kill -9 at random moments of an orchestrated run with memory and profiles: every resume ends in the same state."""

import contextlib
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from candidates import answer
from mantis_model import ANALYSIS, SUMMARY, hypotheses, phase_of, said
from simulated import run_on_disk

HERE = Path(__file__).parent
LOGS = ("calls.jsonl", "trajectory.jsonl", "facts.jsonl", "memory.jsonl", "results.jsonl", "schedule.jsonl")


def model(request, number):
    """Answers that follow from the conversation, some of them malformed."""
    digest = hashlib.sha256(json.dumps(request["messages"]).encode()).hexdigest()
    phase = phase_of(request)
    if phase in ("analyze", "nominate", "summarize") and digest[0] in "01":
        return "Let me think."
    if phase == "nominate":
        return said(hypotheses(*((f"idea {digest[i]}", 1 + int(digest[i], 16), 1 + i, 2) for i in range(4))))
    if phase in ("analyze", "summarize"):
        lessons = {**SUMMARY, "lessons": [f"lesson {digest[:6]}"]}
        return said(ANALYSIS if phase == "analyze" else lessons)
    return answer(f"x.clamp(min=0) + 0 * 0x{digest[:8]}")


def state(out):
    """Everything that a run keeps, but for wall times; a kill may leave the draft of a file, which nobody reads."""
    found = {}
    for path in sorted(out.rglob("*")):
        if path.is_file() and not path.name.startswith(".draft-"):
            text = path.read_text()
            if path.name in LOGS:
                records = [json.loads(line) for line in text.splitlines()]
                text = [{k: v for k, v in one.items() if k not in ("seconds", "tries")} for one in records]
            found[str(path.relative_to(out))] = text
    found["schedule.jsonl"] = [grant for grant in found["schedule.jsonl"] if grant["problem"]]
    return found


@pytest.fixture
def lives(stand_in, tmp_path, request):
    """Kill runs at given requests, so many milliseconds after these arrived; compare them with an undisturbed one."""

    path = os.pathsep.join([str(HERE), str(HERE.parents[2])])
    forks = subprocess.Popen(
        [sys.executable, str(HERE / "simulated.py")], env={**os.environ, "PYTHONPATH": path}, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    request.addfinalizer(forks.kill)

    def start(out, server):
        print(out, server.base_url, file=forks.stdin, flush=True)
        return int(forks.stdout.readline())

    def killed(out, wanted, delay_ms):
        """One killed life and one that ends; return how many requests both made."""
        arrived = threading.Event()

        def answering(asked, number):
            if number == wanted:
                arrived.set()
            return model(asked, number)

        with stand_in.StandIn(answering) as server:
            pid = start(out, server)
            assert arrived.wait(60)
            threading.Event().wait(delay_ms / 1e3)
            with contextlib.suppress(ProcessLookupError):  # it may have ended by then
                os.kill(pid, signal.SIGKILL)
            assert int(forks.stdout.readline()) in (-signal.SIGKILL, 0)
            start(out, server)
            assert int(forks.stdout.readline()) == 0
            return len(server.requests)

    with stand_in.StandIn(model) as server:
        undisturbed = run_on_disk(tmp_path / "whole", server.base_url)
        whole, requests = state(tmp_path / "whole"), len(server.requests)
    assert undisturbed.profiles > 2 and len(whole["memory.jsonl"]) == 4 and len(whole["trajectory.jsonl"]) == 16

    def check(moments, seed):
        chance = random.Random(seed)
        for moment in range(moments):
            out = tmp_path / f"killed_{moment}"
            wanted, delay_ms = chance.randint(1, requests), chance.uniform(0, 20)
            paid = killed(out, wanted, delay_ms)
            assert state(out) == whole, (moment, wanted, delay_ms)
            # the call that was in flight when the kill came has no answer in the log, and is asked again
            assert paid <= requests + 1, (moment, wanted, delay_ms)

    return check


@pytest.mark.slow
def test_a_few_moments(lives):
    lives(3, seed=1)


@pytest.mark.study
@pytest.mark.timeout(1200)
def test_fifty_moments(lives):
    lives(50, seed=2)


def test_a_run_that_is_whole_asks_and_measures_nothing(stand_in, tmp_path):
    with stand_in.StandIn(model) as server:
        run_on_disk(tmp_path / "run", server.base_url)
        before, requests = state(tmp_path / "run"), len(server.requests)
        again = run_on_disk(tmp_path / "run", server.base_url)
        assert (again.evaluated, again.profiles, len(server.requests)) == (0, 0, requests)
    assert state(tmp_path / "run") == before
