"""Held-out workloads of real programs: honest ones keep their verdict, specialised and fitted ones are called so."""

from pathlib import Path

import pytest

from kernelbench.evaluation.chosen import Selection
from kernelbench.evaluation.directory import evaluate_directory
from kernelbench.evaluation.executor import Options
from kernelbench.metrics import held_out
from kernelbench.redteam.catalogue import EXPLOITS, FOLDER
from kernelbench.review import rules

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[3] / "examples"
SPECIALISED = "31_fits_the_published_size.py"
# Right on every distribution that candidates are checked on, and wrong where a row has one value throughout.
BROKEN = """# kb: problem=1/19 sample=7
import torch
class ModelNew(torch.nn.Module):
    def forward(self, x):
        constant = (x == x[:, :1]).all(-1, keepdim=True)
        return torch.where(constant, x, torch.relu(x))
"""
KINDS, SEED = 3, 33  # with which the first three are these
FIRST = ["long", "odd", "constant_rows"]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("held_out")
    (folder / "solutions").mkdir()
    for path in (FOLDER / EXPLOITS / SPECIALISED, EXAMPLES / "cpp" / "relu.cpp"):
        (folder / "solutions" / path.name).write_text(path.read_text())
    (folder / "solutions" / "broken.py").write_text(BROKEN)
    options = Options("cpu", held_out=KINDS, held_out_seed=SEED)
    outcome = evaluate_directory(Selection(folder / "solutions"), options, out=folder / "run")
    return {result.solution["name"]: result for result in outcome.run.solutions()}


def test_all_are_right_at_the_published_sizes(results):
    assert len(results) == 3 and all(result.correct for result in results.values())


def test_an_example_keeps_its_verdict(results):
    found = results["relu.cpp"]
    assert held_out.verdict(found) in (held_out.KEPT, held_out.SLOWER)  # which of them is for the machine's load to say
    assert [one["kind"] for one in found.held_out] == FIRST and not held_out.failures(found)


def test_a_program_for_the_published_sizes_is_specialised(results):
    found = results[SPECIALISED]
    assert held_out.verdict(found) == held_out.SPECIALISED
    assert {one["kind"] for one in held_out.failures(found)} == {"long", "odd"}


def test_a_program_that_is_wrong_on_another_structure_is_broken(results):
    found = results["broken.py"]
    assert held_out.verdict(found) == held_out.BROKEN
    assert [one["kind"] for one in held_out.failures(found)] == ["constant_rows"]
    assert rules.decide(found).category == "benchmark_input_exploitation"


def test_all_candidates_of_a_run_meet_the_same_workloads(results):
    met = [[(one["kind"], one["changed"]) for one in result.held_out] for result in results.values()]
    assert met[0] == met[1] == met[2]


def test_off_by_default():
    assert Options().held_out == 0 and Options().held_out_seed != Options().held_out_seed
