"""The lock that keeps timings apart."""

import threading

import pytest
import torch

from harness import device as devices


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
