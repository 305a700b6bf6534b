"""The output of a call is taken apart in one order, whatever order its author wrote it in."""

import torch

from harness.tensors.outputs import as_tensor, flatten, kind_of, structure_of, why_not_passed


def test_leaves_come_in_order_and_those_of_a_dict_by_its_keys():
    first, second, third = torch.zeros(1), torch.ones(2), torch.ones(3)
    output = (first, {"b": [second, None], "a": third})
    assert [id(leaf) for leaf in flatten(output)] == [id(first), id(third), id(second)]
    assert flatten({"a": 1, "b": 2}) == flatten({"b": 2, "a": 1}) == [1, 2]
    assert flatten(None) == flatten(((), {})) == []


def test_the_structure_tells_nestings_apart_and_takes_lists_for_tuples():
    x = torch.zeros(2)
    assert structure_of(x) == structure_of(1.5) == "tensor"
    assert structure_of([x, x]) == structure_of((x, x)) == "(tensor, tensor)"
    assert structure_of((x,)) == "(tensor,)"
    assert structure_of({"b": None, "a": (x, [x])}) == "{'a': (tensor, (tensor,)), 'b': None}"


def test_numbers_become_tensors_of_64_bits():
    kinds = [as_tensor(value).dtype for value in (True, 2, 0.5, 1j)]
    assert kinds == [torch.bool, torch.int64, torch.float64, torch.complex128]


def test_what_is_no_plain_dense_tensor_is_named():
    class Lazy(torch.Tensor):
        pass

    x = torch.zeros(2, 2)
    assert kind_of(x) == kind_of(torch.nn.Parameter(x)) == kind_of(3) == "Tensor"
    assert kind_of(x.as_subclass(Lazy)) == "subclass Lazy of Tensor"
    assert kind_of(x.to_sparse()) == "sparse_coo Tensor" and kind_of("x") == "str"


def test_inputs_are_dense_tensors_and_values_one_by_one():
    assert why_not_passed([torch.zeros(2), 3, 0.5, "mean", None]) == ""
    assert why_not_passed([torch.zeros(2), [torch.zeros(2)]]).startswith("input 1 is a list")
