"""That what is allocated next lies elsewhere in a GPU's memory, and that nothing else changes."""

import pytest
import torch

from harness.memory.placement import Placement

pytestmark = pytest.mark.gpu
MIB = 1 << 20


def empty(size: int) -> torch.Tensor:
    return torch.empty(size, dtype=torch.uint8, device="cuda")


@pytest.fixture
def places():
    torch.cuda.empty_cache()
    places = Placement(torch.device("cuda", 0))
    yield places
    places.give_back()


def test_two_tensors_come_to_lie_at_distances_that_are_chance(places):
    one, other = empty(64 * MIB), empty(96 * MIB)
    distances = set()
    for _ in range(10):
        del one, other
        places.change()
        one, other = empty(64 * MIB), empty(96 * MIB)
        distances.add(other.data_ptr() - one.data_ptr())
    assert len(distances) > 3


def test_what_lay_between_tensors_in_use_comes_to_lie_elsewhere_too(places):
    used = [empty(4 * MIB).fill_(number) for number in range(5)]  # in one segment
    gap = used.pop(2).data_ptr()
    assert empty(4 * MIB).data_ptr() == gap
    seen = set()
    for _ in range(20):
        places.change()
        seen.add(empty(4 * MIB).data_ptr())
    assert len(seen) > 1
    assert [int(tensor.unique()) for tensor in used] == [0, 1, 3, 4]


def test_no_more_is_kept_afterwards_than_before(places):
    before = torch.cuda.memory_reserved()
    empty(512 * MIB)
    for _ in range(5):
        places.change()
    assert before + 512 * MIB <= torch.cuda.memory_reserved() <= before + (512 + 100) * MIB
    places.give_back()
    assert torch.cuda.memory_reserved() == before


def test_without_the_memory_for_it_nothing_is_kept_and_nothing_lost(places):
    used = empty(64 * MIB).fill_(7)
    before, total = torch.cuda.memory_reserved(), torch.cuda.get_device_properties(0).total_memory
    empty(1024 * MIB)
    torch.cuda.set_per_process_memory_fraction((before + 512 * MIB) / total)
    try:
        places.change()
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert torch.cuda.memory_reserved() == before and int(used.unique()) == 7
