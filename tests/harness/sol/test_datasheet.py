"""Facts about GPUs: every device has them, and they agree with its limits."""

import pytest

from harness.sol.datasheet import ARCHITECTURES, DATASHEETS
from harness.sol.hardware import DEVICES


def test_every_device_has_its_facts():
    assert DATASHEETS.keys() == DEVICES.keys()
    assert {sheet.capability for sheet in DATASHEETS.values()} == ARCHITECTURES.keys()


@pytest.mark.parametrize("name", DEVICES)
def test_rates_double_with_half_the_bits(name):
    """INT8 is twice FP16, or four times where the data sheet quotes the FP16 rate with sums in FP32."""
    limits, sheet = DEVICES[name], DATASHEETS[name]
    quickest = 2 * limits.fp16_accumulate if limits.fp16_accumulate and name != "a10g" else 2 * limits.fp16
    assert sheet.int8 == pytest.approx(quickest, rel=0.02)
    assert sheet.int4 is None or sheet.int4 == pytest.approx(2 * sheet.int8, rel=0.02) or name == "l40s"


@pytest.mark.parametrize("capability", ARCHITECTURES)
def test_a_block_fits_its_sm(capability):
    limits = ARCHITECTURES[capability]
    assert limits.shared_kb_per_block <= limits.shared_kb_per_sm and limits.threads_per_block <= limits.threads_per_sm
    assert limits.blocks_per_sm * 32 <= limits.threads_per_sm and limits.registers_per_sm == 65536


@pytest.mark.gpu
def test_the_device_at_hand_says_the_same():
    import torch

    from harness.sol.hardware import limits_of_product

    properties = torch.cuda.get_device_properties(0)
    limits = limits_of_product(properties.name)
    if limits is None:
        pytest.skip(f"{properties.name} is in no table")
    sheet = DATASHEETS[limits.name]
    architecture = ARCHITECTURES[sheet.capability]
    assert sheet.capability == f"{properties.major}.{properties.minor}"
    assert architecture.registers_per_sm == properties.regs_per_multiprocessor
    assert architecture.threads_per_sm == properties.max_threads_per_multi_processor
    assert architecture.shared_kb_per_sm == properties.shared_memory_per_multiprocessor >> 10
    assert architecture.shared_kb_per_block == properties.shared_memory_per_block_optin >> 10
