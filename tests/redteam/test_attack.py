"""The attack harness: in a throwaway box it tells what a program got, and that an honest one got nothing."""

import os
from pathlib import Path

import pytest

from harness.solution.discover import SolutionError, read_solution
from kernelbench.redteam import box
from kernelbench.redteam.attack import Limits, attack, twin_of
from kernelbench.redteam.box import NoBox
from kernelbench.redteam.catalogue import BY_NAME, FOLDER, HONEST
from kernelbench.redteam.inside import unearned
from kernelbench.run import Run

QUICK = Limits(timeout_s=8, memory_bytes=3 << 30)
EXAMPLES = Run.load(Path(__file__).parents[2] / "results" / "h100" / "examples")


def attacked(program, limits=QUICK):
    try:
        return attack(program, limits)
    except NoBox as error:
        pytest.skip(str(error))


@pytest.mark.slow
def test_an_honest_program_gets_nothing_and_leaves_the_machine_as_it_was():
    before = set(os.listdir("/tmp")) | set(os.listdir(Path.home()))
    report = attacked(FOLDER / HONEST / "11_works_on_a_copy.py")
    assert (report.status, report.gains) == ("ok", []), report
    assert not any("kb-attack" in name for name in {*os.listdir("/tmp"), *os.listdir(Path.home())} - before)


def recorded(problem, kind):
    return next(r for r in EXAMPLES.latest() if r.problem == problem and r.solution["kind"] == kind)


def test_a_speedup_that_its_honest_twin_does_not_have_is_told():
    fast, tie = recorded("1/40", "py"), recorded("1/19", "cu")
    (gain,) = unearned(tie, fast, tie)
    assert "a speedup of 14.8" in gain and "where its honest twin has 1" in gain
    assert not unearned(fast, fast, fast) and not unearned(tie, tie, tie)


def test_a_twin_that_no_longer_works_after_a_program_is_told():
    tie = recorded("1/19", "cu")
    assert unearned(tie, tie, None) == ["its honest twin is without a record after it"]
    assert "nothing can be said of its speed" in unearned(None, tie, tie)[0]


def test_what_does_not_end_is_ended_and_told():
    report = attacked(FOLDER / HONEST / "11_works_on_a_copy.py", Limits(whole_s=1))
    assert "had to be ended from outside: it took longer than 1 s" in report.gains[0]


def test_without_root_there_is_no_box_and_the_message_says_so(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(NoBox, match="run it as root"):
        box.command(["true"])


def test_every_exploit_declares_a_twin_that_there_is(tmp_path):
    assert all(exploit.twin == "reference" or (FOLDER / HONEST / exploit.twin).exists() for exploit in BY_NAME.values())
    (tmp_path / "1_19.py").write_text("# kb: problem=1/19 twin=nowhere.py")
    with pytest.raises(SolutionError, match="names nowhere.py as its honest twin"):
        twin_of(read_solution(tmp_path / "1_19.py"))
