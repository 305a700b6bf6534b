"""Each mutation changes what it says, in the call it names, and nothing else."""

import pytest
import torch
import torch.nn.functional as F

from kernelbench.audit.mutants import Mutant, Mutating, Recorder, candidates
from kernelbench.audit.mutations import MUTATIONS
from kernelbench.audit.operator_call import Inapplicable

torch.manual_seed(3)
X = torch.randn(6, 8)
W, B = torch.randn(8, 8), torch.randn(8)
IMAGE, KERNEL = torch.randn(2, 3, 9, 9), torch.randn(4, 3, 3, 3)


def mutated(forward, mutation, operator, number=0):
    with Mutating(Mutant(mutation, operator, number)) as mode:
        result = forward()
    assert mode.applied
    return result


@pytest.mark.parametrize(
    "mutation, operator, forward, expected",
    [
        ("bias dropped", "addmm", lambda: torch.addmm(B, X, W), lambda: X @ W),
        ("bias dropped", "convolution", lambda: F.conv2d(IMAGE, KERNEL, B[:4]), lambda: F.conv2d(IMAGE, KERNEL)),
        ("scale dropped", "native_layer_norm", lambda: F.layer_norm(X, (8,), B, B), lambda: F.layer_norm(X, (8,)) + B),
        ("skipped", "relu", lambda: X.relu() + 1, lambda: X + 1),
        ("skipped", "relu", lambda: X.clone().relu_(), lambda: X),
        ("operand dropped", "add", lambda: X + B, lambda: X),
        ("epsilon times 10", "native_layer_norm", lambda: F.layer_norm(X, (8,), eps=0.1),
         lambda: F.layer_norm(X, (8,), eps=1.0)),
        ("constant changed", "mul", lambda: X * 2.0, lambda: X * 2.2),
        ("constant changed", "leaky_relu", lambda: F.leaky_relu(X, 0.2), lambda: F.leaky_relu(X, 0.22)),
        ("tanh GELU for erf", "gelu", lambda: F.gelu(X), lambda: F.gelu(X, approximate="tanh")),
        ("other reduction", "sum", lambda: X.sum(1), lambda: X.mean(1)),
        ("other reduction", "max_pool2d_with_indices", lambda: F.max_pool2d(IMAGE, 3), lambda: F.avg_pool2d(IMAGE, 3)),
        ("axis swapped", "_softmax", lambda: X.softmax(1), lambda: X.softmax(0)),
        ("axis swapped", "mm", lambda: W @ W, lambda: W.T @ W),
        ("window off by one", "sum", lambda: X.sum(1), lambda: X[:, :-1].sum(1)),
        ("sum cut short", "mm", lambda: X @ W, lambda: X[:, :-1] @ W[:-1]),
        ("rows shifted", "mm", lambda: X @ W, lambda: (X @ W).roll(1, 0)),
        ("published range only", "tanh", lambda: X.tanh(), lambda: X.clamp(0, 1).tanh()),
        ("cheap approximation", "sigmoid", lambda: X.sigmoid(), lambda: F.hardsigmoid(X)),
        ("scan exclusive", "cumsum", lambda: X.cumsum(0), lambda: X.cumsum(0).roll(1, 0)),
    ],
)  # fmt: skip
def test_a_mutation_is_the_mistake_of_its_name(mutation, operator, forward, expected):
    torch.testing.assert_close(mutated(forward, mutation, operator), expected())


@pytest.mark.parametrize(
    "mutation, where",
    [("last row skipped", (-1,)), ("last element skipped", (-1, -1)), ("last tile skipped", (..., slice(-4, None)))],
)
def test_a_skipped_part_is_zero_and_the_rest_is_right(mutation, where):
    expected = X @ W
    expected[where] = 0
    torch.testing.assert_close(mutated(lambda: X @ W, mutation, "mm"), expected)


@pytest.mark.parametrize(
    "operator, forward",
    [
        ("mm", lambda: X @ W),
        ("convolution", lambda: F.conv2d(IMAGE, KERNEL, B[:4])),
        ("convolution", lambda: F.conv_transpose2d(IMAGE, KERNEL.transpose(0, 1).contiguous())),
        ("mean", lambda: X.mean(1)),
    ],
)
def test_half_precision_accumulation_is_off_by_about_its_rounding(operator, forward):
    result, expected = mutated(forward, "half-precision accumulation", operator), forward()
    error = (result - expected).abs().max() / expected.abs().max()
    assert 1e-5 < error < 1e-2


def test_only_the_named_call_changes():
    with Mutating(Mutant("skipped", "relu", 1)):
        result = (X.relu(), (-X).relu(), X.relu())
    assert torch.equal(result[0], X.relu()) and torch.equal(result[1], -X) and torch.equal(result[2], X.relu())


def test_what_does_not_apply_says_so():
    with pytest.raises(Inapplicable), Mutating(Mutant("bias dropped", "mm", 0)):
        X @ W


def test_a_stale_buffer_returns_what_was_recorded():
    mutant = Mutant("stale buffer", "mm", 0)
    with Recorder(keep=mutant) as recorder:
        (X + 1) @ W
    with Mutating(mutant, recorder.kept):
        assert torch.equal(X @ W, (X + 1) @ W)


def test_candidates_visit_every_mutation_before_any_twice():
    with Recorder() as recorder:
        F.relu(torch.addmm(B, X, W)).sum(1)
    assert recorder.operators == ["addmm", "relu", "sum"]
    first = [mutant.mutation for mutant in candidates(recorder.operators, 1)][: len(MUTATIONS) + 1]
    assert len(set(first)) == len(MUTATIONS) + 1
