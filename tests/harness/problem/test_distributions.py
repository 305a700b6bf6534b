"""Draws beyond the published one stay in the domain, and weights beyond the initial ones let every part be seen."""

import contextlib

import pytest
import torch

from harness.problem.distributions import DRAWS, TIMED, domains, hardened_initialisation
from harness.problem.inputs import build_model, draw_inputs
from harness.problem.module import ProblemError, ProblemFile, ProblemId, load_problem

CPU = torch.device("cpu")
HARDENED = [draw for draw in (*DRAWS, TIMED) if draw != "published"]


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


def test_what_is_timed_is_published_but_for_one_in_a_thousand_anywhere(problem):
    workload = problem("1/19").workload("small")
    (published,), (timed,) = drawn(workload, "published"), drawn(workload, TIMED)
    other = (timed != published).flatten()
    assert 0.8 / 1024 < other.float().mean() <= 1 / 1024
    assert all(part.any() for part in other.chunk(16)) and timed.min() < -2 and timed.max() > 2


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
    ],
)
def test_inputs_stay_in_their_domain(problem, draw, name, holds):
    assert holds(*drawn(problem(name).workload("small"), draw))


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


def test_hardened_weights_make_constants_random_and_keep_the_rest_of_the_procedure(problem):
    norm = problem("1/40")
    initial, hardened = (
        build_model(norm.module.Model, norm.workload("small"), 5, CPU, torch.float32, weights).state_dict()
        for weights in ("initial", "hardened")
    )
    assert initial.keys() == hardened.keys()
    for name, value in initial.items():
        assert value.unique().numel() == 1 and hardened[name].std() == pytest.approx(0.5, rel=0.1)
    again = build_model(norm.module.Model, norm.workload("small"), 5, CPU, torch.float32)
    assert all(torch.equal(value, initial[name]) for name, value in again.state_dict().items())


def test_hardened_weights_keep_the_signal_of_a_deep_network_alive(problem):
    mlp = problem("3/3")
    workload = mlp.workload("small")
    x, y = drawn(workload, "signed"), drawn(workload, "signed", seed=6)

    def change(weights):
        model = build_model(mlp.module.Model, workload, 5, CPU, torch.float32, weights)
        with torch.no_grad():
            one, other = model(*x), model(*y)
        return float((one - other).norm() / one.norm())

    assert change("initial") < 1e-3 < 0.1 < change("hardened")


@pytest.mark.parametrize("layer", [torch.nn.LSTM, torch.nn.GRU])
def test_a_hardened_recurrent_layer_remembers_the_first_of_many_steps(layer):
    def last_with_and_without_the_first(hardened):
        torch.manual_seed(3)
        with hardened_initialisation() if hardened else contextlib.nullcontext():
            model = layer(8, 32, 2)
        x = torch.rand(512, 1, 8)
        with torch.no_grad():
            return [model(steps)[0][-1] for steps in (x, x[256:])]

    assert torch.allclose(*last_with_and_without_the_first(hardened=False), rtol=1e-5, atol=1e-6)
    every, half = last_with_and_without_the_first(hardened=True)
    assert (every - half).abs().max() > 0.01 * every.square().mean().sqrt()


def test_hardened_attention_is_not_nearly_the_mean_and_loses_no_precision(problem):
    """3/31: with initial weights scores are nearly equal, and a series of two terms does, in time linear in tokens."""
    workload = problem("3/31").workload("small")

    def outputs(weights, dtype=torch.float32, scale=1.0):
        model = build_model(workload.problem.module.Model, workload, 5, CPU, torch.float32, weights).to(dtype)
        with torch.no_grad():
            model.attn.in_proj_weight[: 2 * model.attn.embed_dim].mul_(scale)
            return model(drawn(workload, TIMED)[0].to(dtype)).double()

    def off(other, exact):
        return float((other - exact).square().mean().sqrt() / exact.square().mean().sqrt())

    assert off(outputs("initial", scale=0.0), outputs("initial")) < 0.005
    assert off(outputs("hardened", scale=0.0), outputs("hardened")) > 0.05
    assert off(outputs("hardened", torch.float64), outputs("hardened")) < 1e-5


def test_a_hardened_network_of_linear_layers_remembers_and_does_not_amplify_errors(problem):
    """3/34: from zeros half of the sequence before, and in FP64."""
    workload = problem("3/34").workload("full")

    def outputs(weights, dtype, first=0):
        model = build_model(workload.problem.module.Model, workload, 5, CPU, torch.float32, weights).to(dtype)
        x, state = (value.to(dtype) for value in drawn(workload, "published"))
        with torch.no_grad():
            return model(x[first:], state if first == 0 else torch.zeros_like(state))[128 - first :].double()

    def off(other, exact):
        return float((other - exact).abs().max() / exact.square().mean().sqrt())

    single = torch.float32
    assert off(outputs("initial", single, first=108), outputs("initial", single)) < 1e-3
    every = outputs("hardened", single)
    assert off(outputs("hardened", single, first=64), every) > 1.0
    assert off(outputs("hardened", torch.float64), every) < 2e-5


def test_only_the_layer_that_is_fed_back_keeps_a_state(problem):
    workload = problem("3/34").workload("small")
    model = build_model(workload.problem.module.Model, workload, 5, CPU, torch.float32, "hardened")
    own = model.i2h.weight[:, workload.sizes["input_size"] :] / 1.02
    assert torch.allclose(own @ own.T, torch.eye(len(own)), atol=1e-5)
    assert model.i2h.weight.count_nonzero() == model.i2h.weight.numel()
    assert model.h2o.weight.std() > 0.1


@pytest.mark.parametrize(("layer", "cell"), [(torch.nn.LSTM, torch.nn.LSTMCell), (torch.nn.GRU, torch.nn.GRUCell)])
def test_a_cell_of_the_same_seed_has_the_weights_of_the_layer(layer, cell):
    models = []
    for kind in (layer, cell):
        torch.manual_seed(3)
        with hardened_initialisation():
            models.append(kind(8, 32))
    for ours, theirs in zip(*(model.parameters() for model in models)):
        assert torch.equal(ours, theirs)


def test_some_rows_of_timed_probabilities_are_not_as_published(problem):
    workload = problem("1/98").workload("small")
    published, timed = drawn(workload, "published"), drawn(workload, TIMED)
    for before, after in zip(published, timed):
        changed = (before != after).any(dim=1)
        assert 1 <= changed.sum() <= len(before) // 64
        assert torch.allclose(after.sum(dim=1), torch.ones(len(after))) and (after > 0).all()
