"""What is read and computed, against the truth: an element matters where the gradient of the output is not zero."""

import pytest
import torch

from harness.problem.inputs import build_model, call, draw_inputs
from harness.sol.demand import Demand, Interval
from harness.sol.facts import Facts
from harness.sol.operators import trace
from harness.sol.regions import Convolution, Window

WEIGHT = "self.w = nn.Parameter(torch.rand(6, 9))"
X = "torch.rand(4, 10, 6)"

BODIES = {
    "all": ("return x * 2", X, "pass"),
    "slice": ("return x[:, 2:5] * 2", X, "pass"),
    "every second": ("return x[:, ::2] + x[:, ::2]", X, "pass"),
    "every second, both": ("return torch.cat([x[:, ::2], x[:, 1::2]], -1) + 0", X, "pass"),
    "overlapping": ("return x[:, :6].exp() + x[:, 4:].exp()", X, "pass"),
    "quarters": ("a = x.view(4, 2, 5, 6)\n        return a[:, 0, ::2].exp() + a[:, 1, ::2].exp()", X, "pass"),
    "chunks": ("a, b, c = x.chunk(3, -1)\n        return a * b + c", X, "pass"),
    "one of the chunks": ("a, b, c = x.split(2, -1)\n        return a * c", X, "pass"),
    "reshaped rows": ("return x.reshape(40, 6)[10:20] @ self.w", X, WEIGHT),
    "columns of a product": ("return (x @ self.w)[..., :4].relu()", X, WEIGHT),
    "one row of a product": ("return (x.exp() @ self.w)[:, 3]", X, WEIGHT),
    "last of a transposed": ("return x.transpose(0, 1).contiguous()[-1].exp()", X, "pass"),
    "softmax needs its row": ("return torch.softmax(x, -1)[:, :2, 1]", X, "pass"),
    "norm needs its row": ("return F.layer_norm(x, (6,))[:, 5, 0]", X, "pass"),
    "piece of a concatenation": ("return torch.cat([x, x * 2], 1)[:, 12:15]", X, "pass"),
    "head of a sequence": ("y = torch.cat([self.c.expand(4, 1, 6), x], 1)\n        return y[:, 0] * 2", X,
                           "self.c = nn.Parameter(torch.rand(1, 1, 6))"),
    "triangle": ("return x.tril()", "torch.rand(7, 7)", "pass"),
    "strided convolution": ("return F.conv1d(x, self.w.view(9, 6, 1), stride=3)", "torch.rand(2, 6, 10)", WEIGHT),
    "truncated pooling": ("return F.avg_pool1d(x, 4)", "torch.rand(2, 6, 10)", "pass"),
    "sums of some rows": ("return x.sum(-1)[:, :3]", X, "pass"),
    "some of the maxima": ("return x.amax(-1)[:2] + x.sum(-1)[:2]", X, "pass"),
    "batch of a convolution": ("return F.conv1d(x, self.w.view(9, 6, 1))[:1]", "torch.rand(2, 6, 10)", WEIGHT),
    "crop of a convolution": ("return F.conv1d(x, self.w.view(9, 2, 3), groups=3)[:, :, 2:4]",
                              "torch.rand(2, 6, 10)", WEIGHT),
    "cropped by a transposed": ("return F.conv_transpose1d(x, self.w.view(6, 9, 1), padding=2)",
                                "torch.rand(2, 6, 10)", WEIGHT),
    "one of two writes": ("y = torch.zeros(2, 9)\n        y[0] = x[0] @ self.w\n        y[1] = x[1] @ self.w\n"
                          "        return y[0] * 1", "torch.rand(2, 6)", WEIGHT),
    "discarded": ("y = x @ self.w\n        return x + 1", X, WEIGHT),
    "overwritten": ("y = torch.zeros(4, 10, 9)\n        y[:, 1:3] = x[:, 1:3] @ self.w\n        return y", X, WEIGHT),
}  # fmt: skip


def matters(workload):
    """Elements of the input, and of each parameter, of which the output is a function."""
    torch.manual_seed(0)
    device = torch.device("cpu")
    model = build_model(workload.problem.module.Model, workload, 0, device, torch.float64)
    (x,) = draw_inputs(workload, 0, device, torch.float64)
    tensors = [x.requires_grad_(), *model.parameters()]
    output = model(x)
    gradients = torch.autograd.grad((output * torch.rand_like(output)).sum(), tensors, allow_unused=True)
    return [0 if gradient is None else int((gradient != 0).sum()) for gradient in gradients]


@pytest.mark.parametrize("name", BODIES)
def test_the_elements_that_matter_are_read_and_no_others(workload, name):
    body, inputs, init = BODIES[name]
    chosen = workload(body, inputs, init)
    traced = trace(chosen)
    demand = Demand(traced, Facts(traced))
    views = [*traced.inputs.values(), *traced.parameters.values()]
    assert [round(demand.elements(view)) for view in views] == matters(chosen)


def test_work_on_what_is_not_read_is_not_needed(traced):
    result = traced("return torch.relu(x @ self.w)[:, :3]", "torch.rand(8, 6)", WEIGHT)
    demand = Demand(result, Facts(result))
    product, relu = (operator for operator in result.operators if operator.flops.total)
    assert demand.share(product) == demand.share(relu) == pytest.approx(3 / 9)


def test_the_last_steps_of_the_upper_reverse_layer_are_not_needed(traced):
    layer = "self.layer = nn.LSTM(4, 4, num_layers=1, bidirectional=True, batch_first=True)"
    last = traced("return self.layer(x)[0][:, -1]", "torch.rand(3, 10, 4)", layer)
    states = traced("return self.layer(x)[1][0]", "torch.rand(3, 10, 4)", layer)
    shares = [
        Demand(result, Facts(result)).share(next(o for o in result.operators if o.flops.total))
        for result in (last, states)
    ]
    assert shares == [pytest.approx(0.5 + 0.5 / 10), 1.0]


@pytest.mark.parametrize(
    "a, b, union",
    [
        (Interval(0, 4), Interval(4, 3), Interval(0, 7)),
        (Interval(0, 4), Interval(2, 5), Interval(0, 7)),
        (Interval(0, 9), Interval(2, 3), Interval(0, 9)),
        (Interval(0, 3, 2), Interval(1, 3, 2), Interval(0, 6)),
        (Interval(0, 3, 2), Interval(6, 2, 2), Interval(0, 5, 2)),
        (Interval(3, 1), Interval(7, 1), Interval(3, 2, 4)),
        (Interval(0, 2), Interval(5, 2), None),
        (Interval(0, 3, 2), Interval(1, 3), None),
    ],
)
def test_union_of_intervals(a, b, union):
    assert a.union(b) == b.union(a) == union
    if union:
        indices = {i.start + n * i.step for i in (a, b) for n in range(i.count)}
        assert indices == {union.start + n * union.step for n in range(union.count)}


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("stride, padding, dilation, taps", [(1, 0, 1, 3), (1, 1, 1, 3), (2, 3, 2, 4), (3, 1, 1, 2)])
def test_taps_are_those_of_a_convolution_of_ones(traced, transposed, stride, padding, dilation, taps):
    function = "F.conv_transpose2d" if transposed else "F.conv2d"
    call_ = f"{function}(x, self.w, stride={stride}, padding={padding}, dilation={dilation})"
    result = traced(f"return {call_}", "torch.rand(1, 1, 11, 9)", f"self.w = nn.Parameter(torch.rand(1, 1, {taps}, 2))")
    (operator,) = result.operators
    ones = torch.ones(1, 1, 11, 9)
    output = eval(call_.replace("self.w", "torch.ones(1, 1, taps, 2)"),
                  {"F": torch.nn.functional, "torch": torch, "x": ones, "taps": taps})  # fmt: skip
    assert Convolution.of(operator).valid_share == pytest.approx(2 * float(output.sum()) / operator.flops.contraction)


def test_positions_that_a_window_meets():
    assert Window(size=10, stops=4, taps=1, stride=3, padding=0, dilation=1).touched() == 4
    assert Window(size=10, stops=5, taps=2, stride=2, padding=0, dilation=1).touched() == 10
    assert Window(size=10, stops=2, taps=3, stride=1, padding=0, dilation=4).touched() == 6


def test_call_is_what_the_judge_runs(workload):
    """The gradient check above runs the same forward as the trace."""
    chosen = workload("return x * 2", X)
    model = build_model(chosen.problem.module.Model, chosen, 0, torch.device("cpu"), torch.float32)
    assert call(model, [torch.ones(2)]).tolist() == [2, 2]
