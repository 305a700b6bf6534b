"""What the judge's clock on a GPU asks for and in which order, with a worker and a device that are pretended."""

import os
from types import SimpleNamespace

import pytest
import torch

from harness.judge import evaluate
from harness.judge.cross_check import gpu
from harness.judge.cross_check.base import Claim, NotHeld, NotRead
from harness.judge.cross_check.burst_inputs import Burst
from harness.judge.cross_check.gpu import GpuRehearsal, GpuWallClockCheck
from harness.result import CandidateFailure, Status
from harness.timing.rounds import InputCase


@pytest.fixture
def told():
    return []


@pytest.fixture
def clock(told):
    """A clock whose parts only tell what they are told to do."""

    def tells(name):
        return lambda *arguments: told.append((name, *arguments))

    made = object.__new__(GpuRehearsal)
    made._number, made.timeout_s, made.missing, made.facts = 0, 1.0, "", object()
    stream = SimpleNamespace(cuda_stream=7, synchronize=tells("synchronize"))
    made.samples = SimpleNamespace(stream=stream, **{name: tells(name) for name in ("begin", "choose", "take")})
    made.gate = SimpleNamespace(open=tells("open"), await_mark=tells("await"), release=tells("release"))
    made._chain = SimpleNamespace(enqueue=tells("enqueue"), run=lambda *how: told.append(("run", *how)) or 3.0)
    return made


@pytest.fixture
def inputs(told):
    return SimpleNamespace(copy=lambda *arguments: told.append(("copy", *arguments)))


@pytest.fixture
def send(told):
    return lambda seeds, first, number: told.append(("send", seeds, first, number)) or [[(0, 4)]] * len(seeds)


def test_calls_behind_gates_are_enqueued_before_the_clock_starts(clock, inputs, send, told):
    assert clock.held_ms(inputs, [11, 12], send) == 3.0
    assert [what for what, *_ in told] == ["begin", "send", "choose", "choose", "enqueue", "run"]
    assert told[1] == ("send", [11, 12], 0, 1) and told[-1] == ("run", 1, 2, 1.0)
    clock.held_ms(inputs, [13], send)
    assert told[-1] == ("run", 3, 1, 1.0), "no number is waited for twice"


def test_without_gates_each_call_is_asked_for_when_the_one_before_has_been_read(clock, inputs, send, told):
    assert clock.unheld_ms(inputs, [11, 12], send) > 0
    a_call = ["copy", "synchronize", "open", "send", "await", "choose", "take", "synchronize"]
    assert [what for what, *_ in told] == ["begin", *a_call, *a_call]
    assert [arguments for what, *arguments in told if what == "send"] == [[[11], 0, 1], [[12], 1, 2]]


def test_a_candidate_that_waits_for_the_device_is_let_go_and_found(clock, inputs, told, monkeypatch):
    monkeypatch.setattr(gpu, "_HOLD_S", 0.0)

    def waits(seeds, first, number):
        while ("open", 2) not in told:
            pass
        return [[(0, 4)]] * len(seeds)

    with pytest.raises(NotHeld):
        clock.held_ms(inputs, [11, 12], waits)
    assert ("run", 1, 2, 1.0) not in told


def test_a_candidate_that_fails_behind_the_gate_is_let_go(clock, inputs, told):
    """Freeing memory waits for the device, and that for a gate that nobody opened any more."""

    def fails(seeds, first, number):
        raise CandidateFailure(Status.OUT_OF_MEMORY, "no memory")

    with pytest.raises(CandidateFailure):
        clock.held_ms(inputs, [11, 12], fails)
    assert told[-1] == ("open", 2)


def test_a_device_without_gates_is_not_read(clock):
    clock.missing, check = "no waits on host memory", object.__new__(GpuWallClockCheck)
    check.rehearsal = clock
    with pytest.raises(NotRead, match="no waits on host memory"):
        check.read(1, True, 1, print, print)


def test_what_a_call_takes_by_itself_is_known_before_there_is_a_candidate(clock, inputs, told, monkeypatch):
    inputs.draw, inputs.close, inputs.bytes = lambda case: None, list, 4
    inputs.memory = SimpleNamespace(address=0)
    asked = []
    clock.setting = SimpleNamespace(device=torch.device("cpu"), timed=InputCase())
    idle = SimpleNamespace(request=lambda message, _: asked.append(message["op"]))
    clock.fit = lambda: 20
    clock.timer = SimpleNamespace(wait_for_bandwidth=lambda: asked.append("wait"))
    monkeypatch.setattr(gpu, "BurstInputs", lambda *_: inputs)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    overhead = clock._rehearse(idle)
    assert overhead.held == {n: pytest.approx(3.0 * 1.02 / n - 0.001) for n in (1, 3, 10)}
    # there are 32 samples of a burst: a call of a long one has fewer than one that is alone, and less is excused
    assert [*overhead.unheld] == [1, 3, 10] and min(overhead.unheld.values()) >= 0
    # the first makes the device's context; a copy that the driver slows down would excuse work of the candidate
    requests = [1] * 3 + [1] * 3 + [3] * 3 + [1] * 3 + [10] * 3 + [1] * 3
    assert asked == ["rehearse_on_gpu"] + [what for n in requests for what in ["wait"] + ["rehearse_on_gpu"] * n]


def test_what_a_call_takes_by_itself_is_measured_once_for_all_candidates_of_a_workload(monkeypatch, told):
    facts, other = object(), object()
    gate = SimpleNamespace(close=lambda: told.append("gate closed"))
    monkeypatch.setattr(gpu, "_overheads", {})
    monkeypatch.setattr(gpu, "OutputSamples", object)
    monkeypatch.setattr(gpu, "GateChain", lambda *_: SimpleNamespace(close=list))
    monkeypatch.setattr(GpuRehearsal, "_rehearse", lambda self, idle: gpu.Overhead({1: 0.5}, {1: 0.7}))
    file = staticmethod(lambda: os.memfd_create("gate"))
    monkeypatch.setattr(gpu, "Gate", type("Gate", (), {"file": file, "__new__": lambda cls, fd: gate}))

    def fork(fds):
        told.append("forked")
        return SimpleNamespace(close=lambda: told.append("ended"))

    for judged in (facts, facts, other):
        timer = SimpleNamespace(own_overhead_ms=0.0)
        judge = SimpleNamespace(
            reference=SimpleNamespace(setting=None), prepared=SimpleNamespace(facts=judged), timer=timer
        )
        rehearsal = GpuRehearsal(judge, 1.0, fork)
        told.append(rehearsal.overhead_ms(1, held=True))
        rehearsal.close()
    once = ["forked", "ended", 0.5, "gate closed"]
    assert told == [*once, 0.5, "gate closed", *once], "the worker without a candidate is gone before there is one"


@pytest.fixture
def bursts(monkeypatch, told):
    """Return a function that reads bursts which take the times given, and what was compared of them."""
    timed, rare = InputCase("timed"), InputCase("rare_timed")
    took_ms, compared = {}, []
    check = object.__new__(GpuWallClockCheck)
    check.setting = SimpleNamespace(timed=timed, rare=rare, device=torch.device("cpu"))
    check.session = SimpleNamespace(ask=lambda **request: told.append(request["op"]))
    check.rehearsal = SimpleNamespace(missing="", overhead_ms=lambda calls, held: 0.25)
    check.make_room, check._reference_ms = lambda calls: None, lambda burst, copy: 4.0
    check._must_have_been_there = lambda: None
    check._once = lambda inputs, burst, allocations, held: (took_ms[burst.case].pop(0), []) if held else (0.0, [])
    check._called = lambda burst, call, outputs, inputs: (burst.case, call)
    made = SimpleNamespace(draw=lambda case: Burst(case, frozenset({0}), [], [], []), handle="", memory=None)
    made.close = lambda: told.append("freed")
    monkeypatch.setattr(gpu, "BurstInputs", lambda setting, calls: made)

    def read(calls, timed_ms, rare_ms):
        took_ms.update({timed: [*timed_ms], rare: [*rare_ms]})
        reading = check.read(calls, True, 1, compared.append, lambda reading: Claim.AGREES)
        assert took_ms == {timed: [], rare: []}
        return reading, [(case.draw, call) for case, call in compared]

    read.check = check
    return read


def test_what_is_quick_beside_rare_elements_has_the_time_of_other_inputs(bursts):
    reading, compared = bursts(8, [5.0, 6.0], [2.0, 1.0])
    assert (reading.burst_ms, reading.call_ms) == (5.0, (5.0 - 8 * 0.25) / 8)
    every = [("rare_timed", 0), ("rare_timed", 0), ("timed", 0)]
    assert sorted(compared) == every, "all with rare elements, and what counts"


def test_of_bursts_of_few_calls_the_mean_counts(bursts):
    """Whose work depends on its inputs told its quickest call, and the least of two single calls agreed."""
    reading, compared = bursts(1, [8.0, 50.0] * 4, [8.0] * 8)
    assert reading.burst_ms == pytest.approx((4 * 8.0 + 2 * 50.0) / 6)
    assert len(compared) == 16, "all are compared"


@pytest.mark.parametrize(
    ("error", "asked"),
    [
        (NotHeld(), ["open_burst", "close_burst"]),
        (torch.OutOfMemoryError(), ["open_burst", "close_burst"]),
        (CandidateFailure(Status.OUT_OF_MEMORY, "no memory"), ["open_burst", "close_burst"]),
        (CandidateFailure(Status.WRONG_VALUE, "off"), ["open_burst"]),
    ],
)
def test_a_burst_that_may_be_tried_again_is_closed_before_its_memory_is_freed(bursts, told, error, asked):
    """The worker kept it, and the candidate was told to keep too much memory between its calls."""

    def fails(*arguments):
        raise error

    bursts.check._bursts_ms = fails
    with pytest.raises(type(error)):
        bursts(8, [], [])
    assert told == [*asked, "freed"]


def test_between_rehearsals_what_a_call_takes_is_interpolated(clock, monkeypatch):
    monkeypatch.setitem(gpu._overheads, clock.facts, gpu.Overhead({1: 0.5, 3: 0.3, 10: 0.3}, {1: 0.9, 3: 0.7}))
    told_ms = [clock.overhead_ms(calls, held=True) for calls in (1, 2, 3, 7, 128)]
    assert told_ms == pytest.approx([0.5, 0.4, 0.3, 0.3, 0.3])
    told_ms = [clock.overhead_ms(calls, held=False) for calls in (1, 2, 3, 128)]
    assert told_ms == pytest.approx([0.9, 0.8, 0.7, 0.7])


@pytest.mark.parametrize(("kind", "rehearsal"), [("cuda", "GpuRehearsal"), ("cpu", "CpuRehearsal")])
def test_the_worker_without_a_candidate_may_open_devices_where_it_rehearses_on_one(kind, rehearsal, monkeypatch):
    monkeypatch.setattr(evaluate, rehearsal, lambda judge, timeout_s, fork: fork([3]))
    monkeypatch.setattr(evaluate.devices, "environment_of_one", lambda device: {"CUDA_VISIBLE_DEVICES": "0"})
    asked, conditions = [], SimpleNamespace(timeout_s=1.0, memory_bytes=1, device=torch.device(kind))
    server = SimpleNamespace(fork=lambda *_, devices: asked.append(devices))
    evaluate.Evaluation(None, None, conditions, server, print, None)._rehearsal(None)
    assert asked == [kind == "cuda"]


def test_before_a_burst_the_judge_leaves_its_cache_to_the_candidate(told):
    check = object.__new__(GpuWallClockCheck)
    check.session = SimpleNamespace(
        bound_cache=lambda: told.append("bound"),
        timer=SimpleNamespace(wait_for_bandwidth=lambda: told.append("wait")),
        ask=lambda **request: told.append(request["op"]),
    )
    check.rehearsal = SimpleNamespace(held_ms=lambda *_: told.append("clock") or 3.0)
    took_ms, outputs = check._once(None, SimpleNamespace(seeds=[11]), None, held=True)
    assert (took_ms, outputs) == (3.0, [])
    assert told == ["bound", "wait", "prepare_burst", "clock"], "memory that was given back is cleared before the clock"
