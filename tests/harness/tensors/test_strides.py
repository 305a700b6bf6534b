"""How tensors lie in memory."""

import pytest
import torch

from harness.tensors.strides import in_order, is_dense, order_of

DENSE = {
    "contiguous": torch.rand(3, 4, 5),
    "transposed": torch.rand(4, 3).t(),
    "channels last": torch.rand(2, 3, 4, 5).contiguous(memory_format=torch.channels_last),
    "permuted": torch.rand(3, 4, 5).permute(2, 0, 1),
    "one element": torch.rand(()),
    "empty": torch.rand(3, 0, 2),
}
SPARSE = {"expanded": torch.rand(3, 1).expand(3, 4), "strided": torch.rand(6, 8)[::2, 1::3].t()}


@pytest.mark.parametrize("name", [*DENSE, *SPARSE])
def test_what_was_copied_in_the_order_of_its_memory_reads_back_the_same(name):
    tensor = (DENSE | SPARSE)[name]
    memory = torch.full(tensor.shape, torch.nan)
    order = order_of(tensor)
    in_order(memory, order).copy_(tensor)
    assert torch.equal(in_order(memory.clone(), order), tensor)


@pytest.mark.parametrize("name", [name for name in DENSE if name != "empty"])
def test_copying_a_dense_tensor_transposes_nothing(name):
    tensor = DENSE[name]
    target = in_order(torch.empty(tensor.shape), order_of(tensor))
    assert target.stride() == tensor.stride()


@pytest.mark.parametrize("name", [*DENSE, *SPARSE])
def test_dense_is_what_fills_its_memory(name):
    assert is_dense((DENSE | SPARSE)[name]) == (name in DENSE)
