"""The two sides of the process border get equal tensors from equal seeds."""

import torch

from harness.problem.inputs import build_model, copy_changed_constants, copy_matching_state, draw_inputs
from harness.tensors.outputs import as_tensor, flatten

CPU = torch.device("cpu")


def test_equal_seeds_give_equal_inputs_and_weights(problem):
    gemm = problem("2/76")
    workload = gemm.workload("small")
    first, second = (draw_inputs(workload, 5, CPU, torch.float32)[0] for _ in range(2))
    assert torch.equal(first, second)
    assert not torch.equal(first, draw_inputs(workload, 6, CPU, torch.float32)[0])
    one, two = (build_model(gemm.module.Model, workload, 5, CPU, torch.float32) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(one.state_dict().values(), two.state_dict().values()))


def test_only_floating_point_inputs_are_cast(problem):
    logits, targets = draw_inputs(problem("1/95").workload("small"), 1, CPU, torch.bfloat16)
    assert logits.dtype == torch.bfloat16 and targets.dtype == torch.int64


def test_state_is_copied_where_names_and_shapes_agree():
    source, target = torch.nn.Linear(4, 3), torch.nn.Linear(4, 3)
    assert copy_matching_state(source, target)
    assert torch.equal(source.weight, target.weight)


def test_state_of_another_shape_is_left_alone():
    target = torch.nn.Linear(4, 2)
    before = target.weight.clone()
    assert not copy_matching_state(torch.nn.Linear(4, 3), target)
    assert torch.equal(target.weight, before)


def test_changed_constants_go_where_the_same_constants_are():
    class Own(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.matrix = torch.nn.Parameter(torch.randn(4, 3))
            self.shift = torch.nn.Parameter(torch.zeros(1, 4))
            self.register_buffer("running", torch.zeros(4))
            self.scale = torch.nn.Parameter(torch.ones(2, 2))

    def norm():
        return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.LayerNorm(4))

    initial, changed, own = norm(), norm(), Own()
    changed.load_state_dict(initial.state_dict())
    torch.nn.init.normal_(changed[1].weight)
    torch.nn.init.normal_(changed[1].bias)
    matrix = own.matrix.clone()
    copy_changed_constants(initial, changed, own)
    assert own.scale.flatten().equal(changed[1].weight) and own.shift.flatten().equal(changed[1].bias)
    assert own.matrix.equal(matrix) and not own.running.any(), "a buffer only where no parameter is alike"


def test_outputs_are_flattened_and_numbers_become_tensors():
    leaves = flatten((torch.ones(2), [3, {"a": 0.5}], True))
    assert [as_tensor(leaf).dtype for leaf in leaves] == [torch.float32, torch.int64, torch.float64, torch.bool]
