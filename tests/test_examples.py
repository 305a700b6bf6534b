"""The examples are what they say: honest ones ok, broken ones with the status in their name."""

from pathlib import Path

import pytest
import torch

from harness.result import Status
from harness.solution.discover import discover
from harness.solution.languages import languages

EXAMPLES = Path(__file__).parent.parent / "examples"
SOLUTIONS = {s.name: s for s in discover(EXAMPLES).solutions}


def here(solution):
    known = languages().get(solution.language)
    if known and not known.installed():
        return False
    return solution.device == "any" or (solution.device == "cuda") == torch.cuda.is_available()


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n, s in SOLUTIONS.items() if here(s)])
def test_example(name, judged, problem):
    solution = SOLUTIONS[name]
    device = "cuda" if torch.cuda.is_available() else "cpu"
    result = judged(
        problem(str(solution.problem)), solution.path.read_text(), solution.path.suffix,
        device=device, workload="small", timeout_s=8 if "timeout" in name else 60,
    )  # fmt: skip
    folder, _, file = name.partition("/")
    expected = Status(Path(file).stem) if folder == "broken" else Status.OK
    assert result.status is expected, result.message


def test_there_is_a_broken_example_for_each_status():
    broken = {path.stem for path in (EXAMPLES / "broken").iterdir() if path.suffix == ".py"}
    assert broken == {status.value for status in Status} - {"ok"}


def test_each_kind_has_an_honest_example():
    assert {s.language for s in SOLUTIONS.values()} == {"cuda", "cpp", "pytorch", *languages()}
    assert {s.kind for s in SOLUTIONS.values()} == {"py", "cu", "cpp"}
