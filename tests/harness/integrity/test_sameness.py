"""Whether a candidate is the reference again, whatever its names and comments are."""

import pytest

from harness.integrity.static.sameness import is_same

REFERENCE = '''
import torch
class Model(torch.nn.Module):
    """A layer."""
    def __init__(self, n: int):
        super(Model, self).__init__()
        self.layer = torch.nn.Linear(n, n)
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)
N = 4
def get_inputs():
    return [torch.rand(N)]
'''


@pytest.mark.parametrize(
    "change",
    [
        ("Model", "ModelNew"),
        ('"""A layer."""', '"""Much faster."""'),
        ("super(Model, self)", "super()"),
        ("x: torch.Tensor) -> torch.Tensor", "x)"),
        ("return self.layer(x)", "return self.layer(x)  # fused"),
        ("return [torch.rand(N)]", "return [torch.rand(2 * N)]"),
    ],
)
def test_names_comments_and_inputs_make_no_difference(change):
    assert is_same(REFERENCE.replace(*change), REFERENCE)


@pytest.mark.parametrize(
    "change", [("self.layer(x)", "torch.relu(self.layer(x))"), ("Linear(n, n)", "Linear(n, n, False)"), (":", "")]
)
def test_another_program_does(change):
    assert not is_same(REFERENCE.replace(*change), REFERENCE)


def test_two_sources_without_definitions_are_not_the_same():
    assert not is_same("", "")
