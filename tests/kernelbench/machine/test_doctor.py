"""Findings about a machine whose GPU is pretended."""

import pytest
import torch

from harness.compile.toolchain import Compiler
from kernelbench.machine import doctor


@pytest.fixture
def gpu(monkeypatch):
    """A GPU that is counted, and of which each question has the answer given: a text, or an error to raise."""

    def gpu(name, capability):
        def answer(value):
            def answered(*device):
                if isinstance(value, Exception):
                    raise value
                return value

            return answered

        monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
        monkeypatch.setattr(torch.cuda, "get_device_name", answer(name))
        monkeypatch.setattr(torch.cuda, "get_device_capability", answer(capability))
        monkeypatch.setattr(doctor, "nvcc", lambda: Compiler("/nowhere/nvcc", "12.0.1"))
        return {finding.what: finding for finding in doctor.examine()}

    return gpu


def test_a_gpu_has_its_name(gpu):
    found = gpu("NVIDIA H100", (9, 0))
    assert (found["GPU"].found, found["nvcc"].found) == ("NVIDIA H100", "12.0.1 (/nowhere/nvcc)")


def test_a_gpu_that_is_lost_is_a_finding(gpu):
    """It was a traceback."""
    lost = RuntimeError("CUDA error: unknown error\nCUDA kernel errors might be reported later")
    found = gpu(lost, lost)
    assert found["GPU"].found == "" and "(CUDA error: unknown error): check nvidia-smi" in found["GPU"].advice
    assert not dict(doctor.abilities([*found.values()]))["CUDA (.cu)"]


def test_an_nvcc_that_does_not_know_the_gpu_is_a_finding(gpu, monkeypatch):
    monkeypatch.setattr(doctor, "lacking_target", lambda compiler, arch: f"{compiler.version} knows no {arch}")
    found = gpu("NVIDIA B300", (10, 3))
    assert (found["nvcc"].found, found["nvcc"].advice) == ("", "12.0.1 knows no 10.3")
