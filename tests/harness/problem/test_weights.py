"""Weights beyond the initial ones let every part of a model be seen."""

import contextlib
import itertools

import pytest
import torch

from harness.problem.distributions import TIMED, VARIED
from harness.problem.inputs import build_model, draw_inputs
from harness.problem.weights import hardened_initialisation

CPU = torch.device("cpu")


def drawn(workload, draw, seed=5):
    return draw_inputs(workload, seed, CPU, torch.float32, draw)


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


def alike(workload, weights):
    """Return the largest share of a layer's units, or of the output's channels, that are one side of zero or constant.

    Units of layers by their mean and deviation over four draws; of the last layer by the outputs.
    """
    model = build_model(workload.problem.module.Model, workload, 5, CPU, torch.float32, weights)
    kinds = (torch.nn.Linear, torch.nn.modules.conv._ConvNd)
    sums = {}

    def keep(layer, inputs, output):
        units = output.movedim(-1 if isinstance(layer, torch.nn.Linear) else 1, 0).flatten(1).double()
        sums.setdefault(layer, []).append(torch.stack([units.mean(1), units.square().mean(1)]))

    layers = [layer for layer in model.modules() if isinstance(layer, kinds)]
    for layer in layers[:-1]:
        layer.register_forward_hook(keep)
    with torch.no_grad():
        outputs = torch.stack([model(*drawn(workload, TIMED, seed)) for seed in range(4)])
    shares = [0.0]
    for mean, square in (torch.stack(one).mean(0) for one in sums.values()):
        shares.append(float((mean < -5 * (square - mean.square()).clamp_min(0).sqrt()).double().mean()))
    if workload.problem.id.level == 2:
        units = outputs.movedim(2, 0).flatten(1)
        middle = units.median(1, keepdim=True).values
        shares.append(float(((units - middle).abs() < 1e-3).double().mean(1).gt(0.99).double().mean()))
    return max(shares)


OF_OWN_BIAS = ["2/2", "2/9", "2/76", "2/90"]


@pytest.mark.parametrize("name", [*OF_OWN_BIAS, "3/4", "3/5", "3/7", "3/17", "3/18"])
def test_centred_weights_leave_few_units_that_are_alike_for_all_inputs(problem, name):
    """Half of the channels of 2/2 were clamped by their bias: constants passed for them."""
    workload = problem(name).workload("small")
    assert workload.problem.centred
    assert alike(workload, "hardened") < 0.04 < 0.1 < alike(workload, "initial")


@pytest.mark.parametrize(("name", "function"), [("2/25", "min"), ("2/32", "min"), ("2/98", "max")])
def test_with_centred_weights_each_unit_is_the_largest_or_smallest_somewhere(problem, name, function, monkeypatch):
    """By initial weights the mean of the inputs chose 41 of 256 units of 2/98 at ragged: the others were left out."""
    workload, chosen = problem(name).workload("small"), []
    original = getattr(torch, function)

    def noted(units, *arguments, **named):
        found = original(units, *arguments, **named)
        chosen.append(found.indices.unique())
        return found

    def share(weights):
        chosen.clear()
        model = build_model(workload.problem.module.Model, workload, 5, CPU, torch.float32, weights)
        with torch.no_grad():
            for seed in range(4):
                model(*drawn(workload, TIMED, seed))
        units = next(layer.weight.shape[0] for layer in model.modules() if hasattr(layer, "weight"))
        return len(torch.cat(chosen).unique()) / (units // getattr(model, "pool_kernel_size", 1))

    monkeypatch.setattr(torch, function, noted)
    assert share("initial") < 0.85 and share("hardened") == 1


def test_with_centred_weights_each_place_of_a_pooling_window_is_the_largest_somewhere(problem):
    """By initial weights a fifth of the places of 2/74 were not: a seventh of the products could be left out."""
    workload = problem("2/74").workload("small")

    def share_that_never_is(weights):
        model = build_model(workload.problem.module.Model, workload, 7, CPU, torch.float32, weights)
        largest = 0
        for seed in range(6):
            with torch.no_grad():
                units = model.conv_transpose(*drawn(workload, TIMED, seed)) * model.multiplier.sign()
            places = [units[:, :, z::2, y::2, x::2] for z, y, x in itertools.product((0, 1), repeat=3)]
            found = torch.stack(places).max(0).indices.transpose(0, 1).flatten(1)
            largest = largest + torch.nn.functional.one_hot(found, len(places)).double().mean(1) / 6
        return float((largest < 0.001).double().mean())

    assert share_that_never_is("hardened") < 0.02 < 0.15 < share_that_never_is("initial")


@pytest.mark.parametrize("name", ["full", "small"])
def test_with_centred_weights_the_signs_of_scores_depend_on_each_token(problem, name):
    """3/50: by initial weights mean query and mean key decide the signs of whole heads, which need no ReLU then."""
    workload = problem("3/50").workload(name).with_sizes({"batch_size": 1, "seq_len": 128})

    def scores(weights):
        model = build_model(workload.problem.module.Model, workload, 5, CPU, torch.float32, weights)
        with torch.no_grad():
            made = model.c_attn(*drawn(workload, "published", seed=6)).view(128, 3, model.n_head, -1)
        q, k = made[:, :2].permute(1, 2, 0, 3)
        return q @ k.mT / q.shape[-1] ** 0.5

    positive = {weights: (scores(weights) > 0).double().mean((1, 2)) for weights in ("initial", "hardened")}
    assert (positive["hardened"] - 0.5).abs().max() < 0.1 < 0.2 < (positive["initial"] - 0.5).abs().max()


def test_with_even_factors_no_third_of_the_channels_is_never_the_largest(problem, monkeypatch):
    """With drawn ones 22 of the 64 channels of 2/79 at `video` could be left out."""
    workload = problem("2/79").workload("small").with_sizes({"out_channels": 64, "height": 48, "width": 48})
    original, wrong = torch.max, []

    def without_a_third(products, dim):
        order = model.multiplier.flatten().abs().argsort()
        found = original(products, dim=dim)
        wrong.append((original(products[:, order[len(order) // 3 :]], dim=dim).values < found.values - 1e-3).sum())
        return found

    monkeypatch.setattr(torch, "max", without_a_third)
    for weights in ("initial", "hardened"):
        model = build_model(workload.problem.module.Model, workload, 5, CPU, torch.float32, weights)
        with torch.no_grad():
            model(*drawn(workload, TIMED, 0))
    assert wrong[0] == 0 and wrong[1] > 10


def test_even_factors_keep_their_signs_and_their_order():
    torch.manual_seed(3)
    drawn = torch.randn(1000)
    torch.manual_seed(3)
    with hardened_initialisation(even=0.1):
        even = torch.randn(1000, requires_grad=True)
    assert even.requires_grad and (even.sign() == drawn.sign()).all()
    assert (even.abs()[drawn.abs().argsort()].diff() >= 0).all()
    assert 1 <= even.abs().min() and even.abs().max() <= 1.1


def test_centred_weights_have_a_mean_of_zero_for_each_unit():
    convolutions = [torch.nn.Conv2d(6, 5, 3), torch.nn.Conv2d(1, 5, 3), torch.nn.ConvTranspose2d(6, 2, 3)]
    layers = [torch.nn.Linear(8, 5), *convolutions]
    with hardened_initialisation(centred=2.0):
        for layer in layers:
            torch.manual_seed(3)
            layer.reset_parameters()
    linear, conv, single, transposed = (layer.weight.detach().clone() for layer in layers)
    zero = [linear.mean(1), conv.mean(1), single.mean((1, 2, 3)), transposed.mean(0)]
    assert all(mean.abs().max() < 1e-6 for mean in zero)
    torch.manual_seed(3)
    with hardened_initialisation():
        layers[0].reset_parameters()
    assert 1.5 < linear.std() / layers[0].weight.std() < 2


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


def test_a_hardened_recurrent_layer_remembers_no_more_than_its_precision_holds(problem):
    """3/40: a state that changes by a thousandth each step does not change in BF16. So any answer was right."""
    workload = problem("3/40").workload("small")
    model = build_model(workload.problem.module.Model, workload, 5, CPU, torch.bfloat16, "hardened")
    inputs = draw_inputs(workload, 7, CPU, torch.bfloat16, TIMED)
    with torch.no_grad():
        own = model(*inputs).double()
        exact = model.double()(*(value.double() for value in inputs))
    assert (own - exact).abs().max() < 0.12 * exact.square().mean().sqrt()


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


def test_hardened_attention_of_linear_layers_is_not_nearly_the_mean_and_loses_no_precision(problem):
    """3/43 with 512 tokens: a series of two terms in place of the softmax."""
    workload = problem("3/43").workload("full")

    def outputs(weights, dtype=torch.float32, series=False):
        model = build_model(workload.problem.module.Model, workload, 5, CPU, torch.float32, weights).to(dtype)
        batch, length, width, heads = 1, 512, model.n_embd, model.n_head
        torch.manual_seed(5)
        x = torch.rand(batch, length, width).to(dtype)
        if not series:
            with torch.no_grad():
                return model(x).double()
        with torch.no_grad():
            q, k, v = (p.view(batch, length, heads, -1).transpose(1, 2) for p in model.c_attn(x).split(width, dim=2))
            seen = (1 + (q @ k.transpose(-2, -1)) / (width // heads) ** 0.5).tril()
            merged = (seen / seen.sum(-1, keepdim=True) @ v).transpose(1, 2).reshape(batch, length, width)
            return model.c_proj(merged).double()

    def off(other, exact):
        return float((other - exact).square().mean().sqrt() / exact.square().mean().sqrt())

    assert off(outputs("initial", series=True), outputs("initial")) < 1e-3
    assert off(outputs("hardened", series=True), outputs("hardened")) > 0.1
    assert off(outputs("hardened", torch.float64), outputs("hardened")) < 1e-5


def test_outputs_behind_raised_biases_depend_on_the_inputs(problem):
    """2/36 as published: the sum of 256 minima is so far below zero that GELU makes zeros of all."""
    workload = problem("2/36").workload("full").with_sizes({"batch_size": 1})
    x, y = (drawn(workload, VARIED, seed) for seed in (1, 2))

    def share(weights):
        model = build_model(workload.problem.module.Model, workload, 5, CPU, torch.float32, weights)
        with torch.no_grad():
            return float((model(*x) != model(*y)).float().mean())

    assert share("initial") == 0.0 and share("hardened") > 0.9
