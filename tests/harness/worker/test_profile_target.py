"""What a tool watches: a candidate in a process of its own."""

from pathlib import Path

import torch

from harness.memory.guarded import UnguardedBuffers
from harness.timing.rounds import RunConfig
from harness.worker import profile_target


def test_a_library_has_its_tensors_without_canaries(problem, monkeypatch):
    """memcheck saw no write beside them, because the canaries are a part of the same allocation."""
    given = {}
    monkeypatch.setattr(profile_target, "LibraryModel", lambda path, state, **others: given.update(others))
    workload = problem("1/19").workload_for("small", "cpu")
    profile_target._model(RunConfig(workload, torch.device("cpu"), torch.float32), Path("relu.cu"), Path("relu.so"))
    assert isinstance(given["guards"], UnguardedBuffers)
