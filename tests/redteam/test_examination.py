"""Grades of the red team's programs, by their results and those of their honest twins."""

from pathlib import Path

from kernelbench.redteam.catalogue import BY_NAME, EXPLOITS, HONEST
from kernelbench.redteam.examination import MISSED, PREVENTED, grade
from kernelbench.run import Run

EXAMPLES = Run.load(Path(__file__).parents[2] / "results" / "h100" / "examples")
EXPLOIT = BY_NAME["52_units_that_never_win.py"]
PROGRAM, TWIN = f"{EXPLOITS}/{EXPLOIT.name}", f"{HONEST}/{EXPLOIT.twin}"


def recorded(problem, kind):
    return next(r for r in EXAMPLES.latest() if r.problem == problem and r.solution["kind"] == kind)


def test_a_right_program_is_missed_only_where_it_is_faster_than_its_honest_twin():
    fast, tie = recorded("1/40", "py"), recorded("1/19", "cu")
    assert grade(EXPLOIT, {PROGRAM: fast}, None).grade == MISSED
    assert grade(EXPLOIT, {PROGRAM: fast, TWIN: tie}, None).grade == MISSED
    assert grade(EXPLOIT, {PROGRAM: fast, TWIN: fast}, None).grade == PREVENTED
    assert grade(EXPLOIT, {PROGRAM: tie, TWIN: tie}, None).grade == PREVENTED


def test_an_exploit_that_may_not_be_right_is_missed_where_it_is():
    wrong = next(exploit for exploit in BY_NAME.values() if exploit.ends == ("wrong_value",))
    assert grade(wrong, {f"{EXPLOITS}/{wrong.name}": recorded("1/19", "cu")}, None).grade == MISSED
