"""The lock that keeps timings apart."""

import os
import threading

import pytest
import torch

from harness import device as devices
from harness.faults import MachineFault


@pytest.fixture
def cpu(tmp_path, monkeypatch):
    monkeypatch.setattr(devices, "_EVERYBODYS", str(tmp_path))  # nobody else's lock
    return torch.device("cpu")


def test_who_finds_a_device_free_says_nothing(cpu):
    said = []
    with devices.exclusive(cpu, said.append):
        pass
    assert said == []


def test_who_finds_it_taken_says_so_and_gets_it_next(cpu):
    said, order = [], []

    def second():
        with devices.exclusive(cpu, told):
            order.append("second")

    def told(text):
        said.append(text)
        waits.set()

    waits = threading.Event()
    other = threading.Thread(target=second)
    with devices.exclusive(cpu):
        other.start()
        assert waits.wait(10)
        order.append("first")
    other.join(10)
    assert said == ["waits for another run on this CPU"] and order == ["first", "second"]


@pytest.mark.parametrize("kind", ["a pipe", "a link"])
def test_a_pipe_or_link_in_the_place_of_a_lock_is_told_and_neither_waited_for_nor_followed(cpu, tmp_path, kind):
    """Any user of the host can make one: no run began, without a word, or a file was made wherever a link said."""
    for name in devices._lock_names(cpu):
        place = tmp_path / f"kernelbench-{name}.lock"
        os.mkfifo(place) if kind == "a pipe" else place.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(MachineFault, match="is no plain file, and holds the lock"), devices.exclusive(cpu):
        pass
    assert not (tmp_path / "elsewhere").exists()
