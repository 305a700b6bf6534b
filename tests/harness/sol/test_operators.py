"""The tracer: operators, shapes and FLOPs of a reference without data."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from harness.problem.module import ProblemError
from harness.sol.flops import count_recurrent


def test_an_operator_has_name_shapes_types_and_flops(traced):
    result = traced("return torch.relu(x @ self.w)", init="self.w = nn.Parameter(torch.rand(4, 16))")
    product, relu = result.operators
    assert (product.name, relu.name) == ("mm", "relu")
    assert [view.shape for view in product.inputs] == [(8, 4), (4, 16)] and product.output.shape == (8, 16)
    assert product.output.dtype is torch.float32
    assert product.flops.contraction == 2 * 8 * 4 * 16 and relu.flops.elementwise == 8 * 16
    assert result.flops == 2 * 8 * 4 * 16 + 8 * 16
    assert product.inputs[0] == result.inputs["x"] and product.inputs[1] == result.parameters["w"]
    assert result.outputs == relu.outputs


def test_nothing_is_allocated_at_any_size(traced):
    huge = traced("return torch.relu(x)", "torch.rand(1 << 40)")
    assert huge.flops == 1 << 40 and huge.outputs[0].bytes == 1 << 42


def test_an_unknown_operator_is_named_and_counts_nothing(traced):
    result = traced("return torch.special.bessel_j0(torch.relu(x))")
    assert result.unknown == ["special_bessel_j0"]
    assert result.flops == 8 * 4


def test_products_with_vectors_count_as_those_of_matrices(traced):
    result = traced("return x @ x[0, :4] + torch.dot(x[0], x[1])", "torch.rand(8, 4)")
    assert result.contraction_flops == 2 * 8 * 4 + 2 * 4


def test_the_call_is_the_judges_train_mode_and_no_gradients(traced):
    result = traced("return F.dropout(x, 0.5, self.training)")
    assert result.flops == 2 * 8 * 4  # scaling and mask: dropout is live


def test_element_types_follow_the_precision_but_integers_stay(traced):
    result = traced("return x.half() if False else F.embedding(i, x)", "torch.rand(8, 4), torch.zeros(3, dtype=int)",
                    dtype=torch.float16, arguments="x, i")  # fmt: skip
    assert result.inputs["x"].bytes == 8 * 4 * 2 and result.inputs["i"].bytes == 3 * 8
    assert result.outputs[0].dtype is torch.float16


def test_masks_on_integers_and_booleans_are_no_floating_point_work(traced):
    result = traced("return x + 0 * (~(torch.arange(4) > 2))")
    assert [o.flops.total for o in result.operators if o.name == "bitwise_not"] == [0]


def test_views_share_a_storage_and_expanded_elements_count_once(traced):
    result = traced("return x.t().reshape(4, 8, 1)[1:].expand(3, 8, 5)")
    assert result.outputs[0].storage == result.inputs["x"].storage
    assert result.outputs[0].numel == 120 and result.outputs[0].bytes == 24 * 4


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_a_recurrent_layer_is_one_operator_with_the_products_of_its_steps(traced, kind):
    layer = f"nn.{kind}(4, 6, num_layers=2, bidirectional=True, batch_first=True)"
    result = traced("return self.layer(x)[0]", "torch.rand(3, 5, 4)", f"self.layer = {layer}")
    (operator,) = (o for o in result.operators if o.flops.total)
    with torch.device("meta"), FlopCounterMode(display=False) as counter:
        eval(layer, {"nn": torch.nn})(torch.rand(3, 5, 4))
    assert operator.flops.contraction == counter.get_total_flops() > 0
    assert result.outputs[0].shape == (3, 5, 12)


def test_elementwise_work_of_recurrent_layers_by_hand():
    weights = [torch.empty(4 * 7, 5), torch.empty(4 * 7, 7), torch.empty(28), torch.empty(28)]
    assert count_recurrent("lstm", torch.empty(2, 3, 5), None, weights, True).elementwise == 30 * 7 * 2 * 3
    assert count_recurrent("lstm", torch.empty(2, 3, 5), None, weights[:2], False).elementwise == 22 * 7 * 2 * 3


def test_a_recurrent_layer_with_projections_is_left_to_pytorch(traced):
    layer = "self.layer = nn.LSTM(4, 6, proj_size=2)"
    assert traced("return self.layer(x)[0]", "torch.rand(3, 5, 4)", layer).outputs[0].shape == (3, 5, 2)


def test_a_reference_that_needs_data_is_an_error_with_its_reason(traced):
    with pytest.raises(ProblemError, match="cannot be traced"):
        traced("return x[: int(x.sum())]")
