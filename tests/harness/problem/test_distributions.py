"""Draws beyond the published one stay in the domain."""

import math

import pytest
import torch

from harness.problem.distributions import DRAWS, SIZED, TIMED, VARIED, domains, rare
from harness.problem.inputs import draw_inputs
from harness.problem.module import ProblemError, ProblemFile, ProblemId, load_problem
from harness.tensors.dtypes import TOLERANCES

CPU = torch.device("cpu")
HARDENED = [draw for draw in (*DRAWS, TIMED, VARIED, SIZED) if draw != "published"]


def drawn(workload, draw, seed=5):
    return draw_inputs(workload, seed, CPU, torch.float32, draw)


@pytest.mark.parametrize("draw", HARDENED)
def test_a_draw_is_another_one_of_the_same_shapes_and_follows_its_seed(problem, draw):
    workload = problem("1/19").workload("small")
    (published,), (hardened,) = drawn(workload, "published"), drawn(workload, draw)
    assert hardened.shape == published.shape and hardened.dtype == published.dtype
    assert not torch.equal(hardened, published)
    assert torch.equal(hardened, drawn(workload, draw)[0])
    assert not torch.equal(hardened, drawn(workload, draw, seed=6)[0])


def test_what_each_draw_is_for(problem):
    workload = problem("1/19").workload("small")
    x = {draw: drawn(workload, draw)[0] for draw in DRAWS}
    assert x["published"].min() >= 0 and x["signed"].min() < -3
    assert x["shifted"].mean() == pytest.approx(3, abs=0.02)
    assert x["small"].std() == pytest.approx(0.01, rel=0.02) and x["large"].std() == pytest.approx(30, rel=0.02)
    assert torch.equal(x["integers"].unique(), torch.arange(-4.0, 5.0))
    sizes = x["mixed"].std(dim=1)
    assert sizes.max() / sizes.min() > 30  # no sample passes for another


def test_varied_samples_differ_and_none_is_small_enough_to_be_left_out(problem):
    (x,) = drawn(problem("1/19").workload("small"), VARIED)
    sizes = x.square().mean(dim=1).sqrt()
    assert sizes.max() / sizes.min() > 10
    assert sizes.min() > 4 * TOLERANCES[torch.bfloat16] * x.square().mean().sqrt()


def test_sized_tensors_differ_from_call_to_call_as_a_whole(problem):
    workload = problem("1/19").workload("small")
    sizes = [float(drawn(workload, SIZED, seed)[0].std()) for seed in range(20)]
    assert max(sizes) / min(sizes) > 5 and 10**-0.8 < min(sizes) and max(sizes) < 10**0.8


def test_sized_logits_differ_so_much_that_a_part_of_a_row_does_not_tell_its_sum(problem):
    """1/95: of the exponentials of logits that differ less an eighth was enough for the loss of all rows."""
    workload = problem("1/95").workload("small")
    all_of_it, half = [], []
    for seed in range(20):
        logits = drawn(workload, SIZED, seed)[0].double()
        all_of_it.append(logits.logsumexp(1).mean())
        half.append((logits[:, ::2].logsumexp(1) + math.log(2)).mean())
    assert min(abs(a - h) for a, h in zip(all_of_it, half)) > 1e-3 and max(all_of_it) - min(all_of_it) > 1


def test_what_is_timed_is_published_but_for_one_in_a_thousand_anywhere(problem):
    workload = problem("1/19").workload("small")
    (published,), (timed,) = drawn(workload, "published"), drawn(workload, TIMED)
    other = (timed != published).flatten()
    assert 0.8 / 1024 < other.float().mean() <= 1 / 1024
    assert all(part.any() for part in other.chunk(16)) and timed.min() < -2 and timed.max() > 2


@pytest.mark.parametrize(("base", "draw"), [("published", TIMED), ("signed", rare("signed"))])
def test_places_do_not_follow_from_what_the_other_elements_tell_of_the_generator(problem, base, draw):
    """On a CPU it takes 32 bits of the seed, which a few of its numbers tell. The places follow from all bits."""
    workload = problem("1/19").workload("small")
    one, other = 5, 5 + (1 << 40)
    (usual,) = drawn(workload, base, one)
    assert torch.equal(usual, drawn(workload, base, other)[0])
    first, second = ((drawn(workload, draw, seed)[0] != usual).nonzero().tolist() for seed in (one, other))
    assert first and second and first != second


def test_what_is_timed_stays_published_where_it_cannot_be_told_what_else_is_valid(problem):
    (_, targets), (_, others) = (drawn(problem("1/100").workload("small"), d) for d in ("published", TIMED))
    assert torch.equal(targets, others), "they are signs"


@pytest.mark.parametrize("draw", HARDENED)
@pytest.mark.parametrize(
    "name, holds",
    [
        ("1/13", lambda a, b: torch.equal(a, a.T) and torch.equal(b, b.T)),
        ("1/14", lambda a, b: torch.equal(a, a.triu()) and torch.equal(b, b.triu())),
        ("1/15", lambda a, b: torch.equal(a, a.tril()) and torch.equal(b, b.tril())),
        ("1/98", lambda p, q: bool((p >= 0).all()) and torch.allclose(q.sum(-1), torch.ones(len(q)))),
        ("1/100", lambda _, targets: set(targets.unique().tolist()) == {-1.0, 1.0}),
        ("1/95", lambda _, targets: targets.dtype is torch.int64 and targets.max() < 512),
        ("1/93", lambda _, mask: mask.dtype is torch.bool),
        ("1/90", lambda x: bool(((x.abs() > 0.98) & (x.abs() < 1.02)).all())),
    ],
)
def test_inputs_stay_in_their_domain(problem, draw, name, holds):
    assert holds(*drawn(problem(name).workload("small"), draw))


@pytest.mark.parametrize("draw", [TIMED, "signed", VARIED, SIZED])
def test_products_of_factors_depend_on_the_last_of_a_row(problem, draw):
    """1/90: of published draws the product is zero after a hundred columns, and what follows need not be read."""
    (x,) = drawn(problem("1/90").workload("small"), draw)
    products = torch.cumprod(x.double(), dim=1).abs()
    assert products.min() > 0.1 and products.max() < 10


@pytest.mark.parametrize("declared, complaint", [('"strange"', "no word 'strange'"), ('{"z": "real"}', "names 'z'")])
def test_a_domain_that_says_nothing_is_an_error(tmp_path, declared, complaint):
    path = tmp_path / "1_x.py"
    path.write_text(
        f"import torch\nDOMAIN = {declared}\n"
        "class Model(torch.nn.Module):\n    def forward(self, x):\n        return x\n"
        "def get_inputs():\n    return [torch.rand(3)]\ndef get_init_inputs():\n    return []\n"
    )
    with pytest.raises(ProblemError, match=complaint):
        domains(load_problem(ProblemFile(ProblemId(1, 1), "x", path)))


def test_some_rows_of_timed_probabilities_are_not_as_published(problem):
    workload = problem("1/98").workload("small")
    published, timed = drawn(workload, "published"), drawn(workload, TIMED)
    for before, after in zip(published, timed):
        changed = (before != after).any(dim=1)
        assert 1 <= changed.sum() <= len(before) // 64
        assert torch.allclose(after.sum(dim=1), torch.ones(len(after))) and (after > 0).all()


@pytest.mark.parametrize("id", ["1/1", "1/94"])
def test_squares_of_rare_elements_and_of_differences_from_them_can_be_held_in_fp16(problem, id):
    """They were rounded up to 256, whose square is infinite: what had such elements was compared with nothing."""
    workload = problem(id).workload_for("small", "cpu")
    for seed in range(20):
        one, other = draw_inputs(workload, seed, CPU, torch.float16, rare(TIMED))
        assert max(one.abs().max(), other.abs().max()) > 30
        assert all(torch.isfinite((value - 1).square()).all() for value in (one, other, -one, -other))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=["fp32", "fp16"])
def test_a_few_rare_rows_of_probabilities_decide_a_divergence_and_neither_tensor_shows_all(problem, dtype):
    workload, larger, changed = problem("1/98").workload("small"), 0, set()
    for seed in range(12):
        usual, odd = (draw_inputs(workload, seed, CPU, dtype, draw) for draw in (TIMED, rare(TIMED)))
        for x in odd:
            assert (x > 0).all() and torch.allclose(x.double().sum(dim=1), torch.ones(len(x)).double(), atol=1e-3)
        before, after = (float((t.double() * (t.double() / p.double()).log()).sum()) for p, t in (usual, odd))
        larger += after > 1.02 * before
        changed.add(tuple(not torch.equal(a, b) for a, b in zip(usual, odd)))
    assert larger >= 9 and changed == {(True, True), (True, False), (False, True)}
