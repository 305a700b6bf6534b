"""The lock that keeps timings apart, and what is observed of a GPU."""

import os
import threading
from types import SimpleNamespace

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


class Lacking(Exception):
    """The GPU does not support the query."""


@pytest.fixture
def observed(monkeypatch):
    """Return the conditions of a GPU that supports all queries but some."""

    def observed(*lacking):
        def query(name, value):
            def answer(handle, *which):
                if name in lacking or (which and which[0] in lacking):
                    raise Lacking
                return value

            return answer

        library = SimpleNamespace(NVMLError=Lacking)
        library.NVML_CLOCK_SM, library.NVML_CLOCK_MEM, library.NVML_TEMPERATURE_GPU = "sm", "memory", "gpu"
        library.nvmlDeviceGetCurrentClocksThrottleReasons = query("reasons", 0x4)
        library.nvmlDeviceGetClockInfo = query("clock", 1500)
        library.nvmlDeviceGetPowerUsage = query("power", 300_000)
        library.nvmlDeviceGetTemperature = query("temperature", 40)
        monkeypatch.setattr(devices.Nvml, "open", lambda device: devices.Nvml(library, None))
        observer = devices.Observer(torch.device("cuda"))
        observer.observe()
        return observer

    return observed


def test_clocks_power_and_throttling_are_observed(observed):
    seen = observed().conditions()
    assert seen["sm_clock_mhz"] == seen["memory_clock_mhz"] == {"min": 1500, "median": 1500, "max": 1500}
    assert (seen["power_w"]["max"], seen["temperature_c"]["min"], seen["throttled"]) == (300, 40, ["sw_power_cap"])
    assert observed().throttled


@pytest.mark.parametrize(
    ("lacking", "field"),
    [
        ("memory", "memory_clock_mhz"), ("sm", "sm_clock_mhz"), ("power", "power_w"), ("temperature", "temperature_c"),
        ("reasons", "throttled"),
    ],
)  # fmt: skip
def test_what_a_gpu_does_not_tell_is_left_out(observed, lacking, field):
    """One query that it lacked kept everything from being evaluated."""
    assert observed(lacking).conditions().keys() == observed().conditions().keys() - {field}
    assert not observed("reasons").throttled


def test_a_gpu_that_tells_nothing_is_not_observed(observed):
    everything = ("sm", "memory", "power", "temperature", "reasons")
    assert observed(*everything).conditions() == {"clocks": "not observed"}
