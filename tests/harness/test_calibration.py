"""What a copy in device memory should take, from a few that were measured."""

import pytest

from harness.judge.calibration import Calibration

COPIES = [(1024, 0.01), (4096, 0.01), (1 << 20, 0.05), (2 << 20, 0.09)]


@pytest.mark.parametrize(
    ("size", "ms"), [(1, 0.01), (1024, 0.01), (4096, 0.01), (1 << 20, 0.05), (3 << 19, 0.07), (2 << 20, 0.09)]
)
def test_a_copy_takes_what_it_took_or_lies_between(size, ms):
    assert Calibration(COPIES, 0.0, 0.0).copy_ms(size) == pytest.approx(ms)


def test_a_larger_one_takes_as_long_for_each_byte():
    assert Calibration(COPIES, 0.0, 0.0).copy_ms(10 << 20) == pytest.approx(0.41)
