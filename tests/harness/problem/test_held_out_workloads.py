"""Held-out workloads: which sizes change, how far, and that the reference takes them."""

import itertools

import pytest
import torch

from harness.problem.distributions import STRUCTURES
from harness.problem.held_out import held_out, input_sizes
from harness.problem.inputs import draw_inputs
from harness.problem.module import ProblemFile, ProblemId, load_problem
from kernelbench import suite

CPU = torch.device("cpu")
CONSTANTS = """
import torch
batch_size, dim, features = 16, 64, 8
class Model(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.layer = torch.nn.Linear(features, 2)
    def forward(self, x): return self.layer(x.reshape(-1, 8))
def get_inputs(): return [torch.rand(batch_size, dim)]
def get_init_inputs(): return [features]
"""


def workload(problem, name="small"):
    return load_problem(suite.find(problem)[0]).workload(name)


@pytest.fixture
def constants(tmp_path):
    """A module in KernelBench's format, whose sizes are constants; its dim must be a multiple of 8."""
    path = tmp_path / "1_own.py"
    path.write_text(CONSTANTS)
    return load_problem(ProblemFile(ProblemId(1, 1), "own", path)).workload("full")


def drawn(of, seed=0, count=7):
    return list(itertools.islice(held_out(of, seed), count))


def test_what_defines_the_model_stays(constants):
    assert input_sizes(workload("2/40")) == {"batch_size": 256}
    assert input_sizes(workload("1/1")) == {"n": 256}
    assert input_sizes(constants) == {"batch_size": 16, "dim": 64}


def test_every_kind_comes_once_before_any_comes_again():
    kinds = [one.kind for one in drawn(workload("1/19"))]
    assert sorted(kinds) == sorted(["odd", "prime", "tiny", "long", *STRUCTURES])


def test_a_seed_gives_the_same_workloads_and_another_one_others():
    first, again, other = (drawn(workload("1/19"), seed) for seed in (1, 1, 2))
    assert first == again != other


@pytest.mark.parametrize("seed", range(5))
def test_sizes_are_around_the_published_ones(seed):
    of = workload("1/19")
    for one in drawn(of, seed, 14):
        assert set(one.changed) <= set(of.sizes) and bool(one.changed) != bool(one.draw)
        for name, size in one.changed.items():
            published = of.sizes[name]
            if one.kind == "odd":
                assert size % 2 == 1 and abs(size - published) <= 2
            elif one.kind == "prime":
                assert all(size % n for n in range(2, size)) and size <= published
            elif one.kind == "tiny":
                assert size <= 7
            else:
                assert published < size <= 1.75 * published


@pytest.mark.parametrize("seed", range(3))
def test_the_reference_takes_every_size(constants, seed):
    for of in (constants, workload("3/43"), workload("1/67")):
        for one in drawn(of, seed):
            other = of.with_sizes(one.changed)
            model = other.problem.module.Model(*other.get_init_inputs())
            model(*draw_inputs(other, 0, CPU, torch.float32, one.draw or "published"))


def test_constants_are_as_they_were_afterwards(constants):
    assert constants.with_sizes({"batch_size": 3}).get_inputs()[0].shape == (3, 64)
    assert constants.get_inputs()[0].shape == (16, 64)


def test_a_problem_without_sizes_or_structure_has_no_end_of_them():
    """Embedding lookups have integer inputs only: there is nothing to structure."""
    found = list(itertools.islice(held_out(workload("3/48"), 0), 50))
    assert {one.kind for one in found} <= set(STRUCTURES) and len(found) < 50


def test_structures():
    x = torch.empty(64, 33)
    ragged = STRUCTURES["ragged"](x.clone())
    lengths = (ragged != 0).sum(-1)
    assert len(set(lengths.tolist())) > 5 and all((row[:n] != 0).all() for row, n in zip(ragged, lengths))
    assert STRUCTURES["clustered"](x.clone()).unique().tolist() == [-3, -1, 1, 3]
    constant = (STRUCTURES["constant_rows"](x).std(-1) == 0).sum()
    assert 10 < constant < 54
