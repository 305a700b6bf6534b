"""Statistics, when sampling stops, whether a series is stable, and that a clock measures what it says."""

import itertools
import math
import os
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from harness.sol.hardware import limits_of_product
from harness.timing import Round, cuda_events
from harness.timing.convergence import CV_TARGET, Convergence
from harness.timing.cuda_events import CudaEvents
from harness.timing.cupti import breakdown
from harness.timing.interleaved import CANDIDATE, InterleavedTiming
from harness.timing.queue_fill import HostTimes
from harness.timing.speedup import Series, ratio_of_medians, undisturbed
from harness.timing.stability import stability
from harness.timing.statistics import coefficients_of_variation, relative_standard_error, summarise, trimmed_mean
from harness.timing.unpaired import ratio_of_runs
from harness.timing.wall_clock import WallClock, last_level_caches_bytes


def series(means, calls=2):
    return Series([[mean] * calls for mean in means])


def noise(count, centre=1.0, spread=0.01, seed=0):
    return list(centre * np.random.default_rng(seed).lognormal(0, spread, count))


def test_summary_of_a_case_worked_by_hand():
    summary = summarise([[1.0], [2.0], [3.0], [4.0], [10.0]])
    assert summary["median_ms"] == 3.0 and summary["mean_ms"] == 4.0
    assert summary["std_ms"] == pytest.approx((50 / 4) ** 0.5)
    assert summary["cv"] == pytest.approx((50 / 4) ** 0.5 / 4)
    assert summary["sem"] == pytest.approx((50 / 4) ** 0.5 / 4 / 5**0.5)
    assert summarise([[5.0]])["sem"] is None, "Infinity is no JSON"
    assert (summary["min_ms"], summary["q1_ms"], summary["q3_ms"], summary["max_ms"]) == (1.0, 2.0, 4.0, 10.0)
    assert summary["samples"] == 5 and summary["samples_ms"] == [1.0, 2.0, 3.0, 4.0, 10.0]


def test_one_call_that_does_the_work_of_a_round_is_no_faster():
    honest, hoarding = [[1.0] * 8] * 10, [[8.0] + [0.0] * 7] * 10
    assert summarise(honest)["median_ms"] == summarise(hoarding)["median_ms"] == 1.0


def test_a_trimmed_mean_lies_between_the_modes_and_ignores_outliers():
    modes = [4.9] * 9 + [5.1] * 9
    assert trimmed_mean([*modes, 0.0, 99.0]) == pytest.approx(5.0)
    assert trimmed_mean([3.0]) == 3.0


def test_no_error_is_known_from_one_sample():
    assert relative_standard_error([1.0]) == float("inf")


def rule(cv_target=0.01, max_seconds=60, **limits):
    return Convergence(cv_target, max_seconds, **limits)


def first_reason(means, *others, **limits):
    """Why sampling of these series ends, and after how many rounds."""
    convergence = rule(**limits)
    for rounds in range(1, len(means) + 1):
        if reason := convergence.reason(*(series(one[:rounds]) for one in (means, *others))):
            return reason, rounds
    return None, len(means)


def test_regular_samples_cannot_stop_before_the_floor():
    assert first_reason([1.0] * 200) == ("cv_under_target", 10)
    assert rule().reason(series([1.0] * 9, calls=8)) is None
    assert rule().reason(series([1.0] * 10, calls=1)) == "cv_under_target"


def test_a_noisy_series_takes_more_rounds_and_ends_when_its_coefficient_of_variation_has_settled():
    reason, rounds = first_reason(noise(200, spread=0.03))
    assert reason == "cv_settled" and rounds >= (0.03 / 0.005) ** 2 * 0.7  # what its standard error takes


def test_two_values_in_turn_settle_though_their_coefficient_of_variation_is_never_under_the_target():
    assert first_reason([1.0, 1.03] * 100) == ("cv_settled", 10)


def test_noise_does_not_end_sampling_though_its_coefficient_of_variation_has_settled():
    """A standard error under 0.5 % takes 400 rounds and more of these: a candidate gains nothing by being noisy."""
    assert first_reason([1.0, 1.25] * 100) == ("max_rounds", 200)


def test_a_coefficient_of_variation_that_still_grows_has_not_settled():
    """Rounds begin to vary late: the estimate was lower over the last half of them than it is now."""
    grows = [1.0] * 20 + [1.0, 1.04] * 10
    assert rule(max_rounds=500).reason(series(grows)) is None
    assert relative_standard_error(grows) < 0.005


def test_a_wider_target_ends_it_sooner():
    noisy = noise(200, spread=0.015)
    assert first_reason(noisy, cv_target=0.05)[1] < first_reason(noisy)[1]
    assert first_reason(noisy, cv_target=0.05)[0] == "cv_under_target"


def test_a_running_coefficient_of_variation_is_that_of_each_beginning():
    samples = noise(30, centre=1e3)
    assert coefficients_of_variation(samples)[1:] == pytest.approx(
        [np.std(samples[:n], ddof=1) / np.mean(samples[:n]) for n in range(2, 31)]
    )


def test_every_series_must_have_converged():
    assert rule().reason(series([1.0] * 50), series([1.0, 2.0] * 25)) is None


def test_time_runs_out():
    assert rule(max_seconds=0.0).reason(series([1.0, 2.0] * 10)) == "max_seconds"


def test_before_the_floor_only_long_calls_end_it():
    assert rule().reason(series([1.0] * 2)) is None
    assert rule(max_seconds=0.0).reason(series([1.0] * 2)) == "max_seconds"


def test_what_takes_long_between_short_calls_gives_no_verdict(monkeypatch):
    """A candidate that slept there had one sample, whose interval has no width."""
    clock = itertools.count(0.0, 2.1)
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    assert first_reason([1.0] * 9, max_seconds=0.6) == ("held_up", 9)
    assert first_reason([1.0] * 10, max_seconds=0.7) == ("cv_under_target", 10)
    assert first_reason([400.0] * 9, max_seconds=0.6) == ("max_seconds", 1)


def test_one_round_that_a_candidate_says_to_have_been_long_does_not_end_sampling(monkeypatch):
    """Its other samples were as few then, and two of three that it forged hid the third."""
    clock = itertools.count(0.0, 0.7)
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    assert first_reason([1.0, 1000.0, *[1.0] * 8], max_seconds=0.6)[1] == 10


@pytest.fixture
def rounds_played():
    """Why a contest of these two ended, and its rounds; the times of a round vary together, as under one load."""

    def play(speedup, spread=0.0):
        rng, loads = np.random.default_rng(0), itertools.cycle([1.0, 1.15, 1.05, 1.2, 1.1])

        def play_round(calls, first, waits):
            at = next(loads)
            ours = at * (1 + spread * rng.standard_normal())
            return {CANDIDATE: Round([], [], [ours] * calls), "eager": Round([], [], [speedup * at] * calls)}

        contest = InterleavedTiming(play_round, WallClock(torch.device("cpu")), torch.device("cpu"), 0.01)
        contest.run(calls=2)
        return contest.stopped, contest.record(CANDIDATE)["rounds"]

    return play


@pytest.mark.parametrize("speedup", [14.3, 1.54, 0.52])
def test_a_ratio_that_every_round_alone_shows_ends_at_the_floor(rounds_played, speedup):
    assert rounds_played(speedup) == ("decided", 10)


@pytest.mark.parametrize(
    ("speedup", "spread"), [(1.0, 0.0), (14.5, 0.01), (14.3, 0.05)], ids=["a tie", "between two digits", "noise"]
)
def test_a_verdict_or_a_digit_that_is_open_goes_on(rounds_played, speedup, spread):
    stopped, rounds = rounds_played(speedup, spread=spread)
    assert stopped != "decided" and rounds > 10


def test_calls_that_take_long_make_shorter_rounds():
    convergence = rule(max_seconds=1.2)  # of at least 10 rounds
    assert convergence.calls_a_round(8, 0.001) == 8
    assert convergence.calls_a_round(8, 0.039) == 3
    assert convergence.calls_a_round(8, 5.0) == 1
    assert convergence.calls_a_round(1, 5.0) == 1  # more do not fit the memory


def test_a_slow_candidate_is_sampled_for_as_long_as_a_quick_one():
    def play(calls, first, waits):
        time.sleep(0.05 * calls)
        return {CANDIDATE: Round([], [], [50.0] * calls)}

    contest = InterleavedTiming(play, WallClock(torch.device("cpu")), torch.device("cpu"), CV_TARGET)
    begin = time.monotonic()
    contest.run(calls=8)
    record = contest.record(CANDIDATE)
    assert record["calls_a_round"] == 1 and record["rounds"] == 10 and record["stopped"] == "cv_under_target"
    assert time.monotonic() - begin < 2.5


def test_a_round_that_the_host_interrupted_is_left_out_of_every_side():
    ours = Series([[1.0], [9.0], [2.0], [3.0], [4.0], [5.0]], [True, False, True, True, True, True], [False] * 6)
    theirs = Series([[10.0], [11.0], [12.0], [13.0], [14.0], [15.0]], [True] * 6, [True] * 3 + [False] * 3)
    kept = undisturbed({"ours": ours, "theirs": theirs})
    assert kept["ours"].means_ms == [1.0, 2.0, 3.0, 4.0, 5.0] and kept["ours"].queue_full
    assert kept["theirs"].means_ms == [10.0, 12.0, 13.0, 14.0, 15.0] and kept["theirs"].throttled_samples == 2


def test_a_side_that_drains_its_queue_itself_keeps_its_rounds():
    drains = Series([[1.0]] * 4, [False, True, False, False], [False] * 4)
    other = Series([[1.0]] * 4, [True] * 4, [False] * 4)
    kept = undisturbed({"drains": drains, "other": other})
    assert len(kept["drains"].rounds_ms) == len(kept["other"].rounds_ms) == 4 and not kept["drains"].queue_full


def test_a_few_interruptions_in_few_rounds_are_not_a_queue_that_runs_dry():
    full = [False] * 3 + [True] * 7
    assert Series([[1.0]] * 10, full, [False] * 10).queue_full
    assert not Series([[1.0]] * 10, [False, *full[:-1]], [False] * 10).queue_full


def test_what_is_not_a_launch_is_in_the_rounds_whose_queue_stayed_full():
    assert Series([[1.0], [9.0], [2.0]], [True, False, True], [False] * 3).full_means_ms == [1.0, 2.0]
    assert Series([[8.0], [9.0]], [False, False], [False] * 2).full_means_ms == [8.0, 9.0]


def test_sampling_ends_in_spite_of_a_host_that_is_interrupted_now_and_then():
    numbers = iter(range(10**6))

    def play(calls, first, waits):
        held_up = next(numbers) % 7 == 6
        return {CANDIDATE: Round([], [], [0.5 if held_up else 0.005] * calls, queue_full=not held_up)}

    contest = InterleavedTiming(play, WallClock(torch.device("cpu")), torch.device("cpu"), CV_TARGET)
    contest.run(calls=2)
    record = contest.record(CANDIDATE)
    assert contest.stopped == "cv_under_target" and record["max_ms"] < 0.006
    assert record["interrupted_rounds"] >= 1 and record["queue_full"] and record["underfull_rounds"] == 0


def test_a_side_whose_queue_runs_dry_says_how_often():
    numbers = iter(range(10**6))

    def play(calls, first, waits):
        return {CANDIDATE: Round([], [], [1.0] * calls, queue_full=next(numbers) % 2 == 0)}

    contest = InterleavedTiming(play, WallClock(torch.device("cpu")), torch.device("cpu"), CV_TARGET)
    contest.run(calls=2)
    record = contest.record(CANDIDATE)
    assert not record["queue_full"] and record["rounds"] // 2 <= record["underfull_rounds"] <= record["rounds"] // 2 + 1


def test_a_side_that_never_fills_its_queue_is_timed_with_its_launches():
    asked, numbers = [], iter(range(10**6))

    def play(calls, first, waits):
        asked.append(set(waits))
        fills = {CANDIDATE: False, "eager": next(numbers) == 2}  # once is enough: the host is slow now and then
        return {name: Round([], [], [1.0] * calls, queue_full=full) for name, full in fills.items()}

    contest = InterleavedTiming(play, WallClock(torch.device("cpu")), torch.device("cpu"), CV_TARGET)
    contest.run(calls=2)
    assert asked[0] == set() and asked[-1] == {CANDIDATE} == contest.waits


def test_what_another_clock_has_seen_is_added_to_every_sample():
    def play(calls, first, waits):
        return {name: Round([], [], [ms] * calls) for name, ms in {CANDIDATE: 1.0, "eager": 3.0}.items()}

    contest = InterleavedTiming(play, WallClock(torch.device("cpu")), torch.device("cpu"), CV_TARGET)
    contest.run(calls=2)
    assert contest.comparison("eager")["speedup"] == pytest.approx(3.0)
    contest.add_penalty(CANDIDATE, 0.5)
    assert contest.record(CANDIDATE)["median_ms"] == contest.record(CANDIDATE)["min_ms"] == 1.5
    assert contest.comparison("eager")["speedup"] == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("samples", "found"),
    [
        (noise(60), "stable"),
        ([*noise(30), *noise(30, 1.3)], "drifting"),
        ([1 + 0.005 * i for i in range(60)], "drifting"),
        ([a for pair in zip(noise(30), noise(30, 1.4)) for a in pair], "bimodal"),
        (noise(60, spread=0.3), "noisy"),
        ([*noise(57), 40.0, 55.0, 70.0], "stable"),  # rare interruptions
        ([1.0] * 60, "stable"),
        ([1.0, 1.1], "stable"),
        ([1.0, 5.0], "noisy"),
        ([1000.0, 4.0, 0.001], "noisy"),
        ([1.0], "stable"),  # too few to tell
    ],
    ids=[
        "quiet", "a step", "a slope", "two modes", "noise", "outliers", "constant", "two samples", "two that differ",
        "three that differ", "one sample",
    ],
)
def test_a_series_without_one_time_to_report_is_named(samples, found):
    assert stability(samples, noise=0.1) == found


def test_a_ratio_has_an_interval_and_a_verdict():
    ratio = ratio_of_medians(series(noise(40, 2.0, seed=1)), series(noise(40, 1.0, seed=2)))
    assert ratio.low < 2.0 < ratio.high and ratio.high - ratio.low < 0.05
    assert ratio.verdict == "faster"
    assert ratio_of_medians(series(noise(40, 1.0)), series(noise(40, 1.1))).verdict == "slower"


def test_what_the_timer_adds_is_taken_off_each_side_as_its_own_process_saw_it():
    class Timer(WallClock):
        def overhead_ms(self, empty_ms):
            return empty_ms - 0.002  # the empty kernel's own time

    def play(calls, first, waits):
        return {
            CANDIDATE: Round([], [], [0.0090] * calls, empty_ms=0.0060),
            "eager": Round([], [], [0.0095] * calls, empty_ms=0.0065),
        }

    contest = InterleavedTiming(play, Timer(torch.device("cpu")), torch.device("cpu"), CV_TARGET)
    contest.run(calls=2)
    assert contest.record(CANDIDATE)["median_ms"] == pytest.approx(0.005)
    assert contest.record("eager")["median_ms"] == pytest.approx(0.005)
    assert contest.record("eager")["overhead_ms"] == pytest.approx(0.0045)


@pytest.mark.parametrize(
    ("shares", "found"), [([0.9, 0.9], "stable"), ([0.9, 0.3], "disturbed"), ([0.3, 0.9], "disturbed")]
)
def test_a_device_that_is_far_slower_than_it_should_be_has_no_verdict(shares, found):
    class Timer(WallClock):
        seen = iter(shares)

        def bandwidth_fraction(self):
            return next(self.seen)

    def play(calls, first, waits):
        return {name: Round([], [], [ms] * calls) for name, ms in {CANDIDATE: 1.0, "eager": 2.0}.items()}

    contest = InterleavedTiming(play, Timer(torch.device("cpu")), torch.device("cpu"), CV_TARGET)
    contest.run(calls=2)
    assert contest.record(CANDIDATE)["stability"] == found and contest.conditions()["bandwidth_fraction"] == shares
    assert contest.comparison("eager")["verdict"] == ("faster" if found == "stable" else "unstable")


def test_a_side_may_be_charged_or_scaled_and_its_times_stay_times():
    def play(calls, first, waits):
        return {name: Round([], [], [ms] * calls) for name, ms in {CANDIDATE: 1.0, "eager": 2.0}.items()}

    contest = InterleavedTiming(play, WallClock(torch.device("cpu")), torch.device("cpu"), CV_TARGET)
    contest.run(calls=2)
    contest.scale("eager", 0.75)
    contest.add_penalty(CANDIDATE, 0.25)
    assert contest.comparison("eager")["speedup"] == pytest.approx(1.5 / 1.25)
    contest.scale("eager", 0.0)
    assert 0 < contest.record("eager")["max_ms"] <= 0.001


@pytest.fixture
def contest_by_place():
    """Of the same thing twice, which is 5 % slower in one place of four; and the places that it was played in."""

    def make(first_places, gain=1.0):
        places = dict(first_places)
        seen = []

        def play(calls, first, waits):
            return {
                name: Round([], [], [(1.05 if places[name] == 0 else 1.0) / (gain if name == CANDIDATE else 1)] * calls)
                for name in (CANDIDATE, "eager")
            }

        def move():
            seen.append(len(seen))
            places.update({CANDIDATE: len(seen) % 4, "eager": (len(seen) + 2) % 4})

        contest = InterleavedTiming(play, WallClock(torch.device("cpu")), torch.device("cpu"), CV_TARGET)
        contest.run(calls=4)
        return contest, move, seen

    return make


def test_a_verdict_that_is_luck_with_a_place_in_memory_does_not_outlast_other_places(contest_by_place):
    contest, move, seen = contest_by_place({CANDIDATE: 1, "eager": 0})
    assert contest.comparison("eager")["verdict"] == "faster" and contest.is_close("eager")
    contest.rerun_with_new_placement(move)
    assert contest.comparison("eager")["verdict"] == "tie"
    record = contest.record(CANDIDATE)
    assert record["placements"] == record["rounds"] == len(seen) == 10 and record["samples"] == 20
    assert record["calls_a_round"] == 2
    assert record["stopped"] == "placements"


def test_a_small_gain_that_is_there_in_all_places_stays(contest_by_place):
    contest, move, _ = contest_by_place({CANDIDATE: 1, "eager": 1}, gain=1.06)
    assert contest.is_close("eager")
    contest.rerun_with_new_placement(move)
    assert contest.comparison("eager")["verdict"] == "faster"
    assert contest.comparison("eager")["speedup"] == pytest.approx(1.06)


@pytest.mark.parametrize("gain", [1.0, 1.5, 0.5])
def test_a_tie_and_what_no_place_explains_are_not_close(contest_by_place, gain):
    contest, *_ = contest_by_place({CANDIDATE: 1, "eager": 1}, gain)
    assert not contest.is_close("eager") and contest.record(CANDIDATE)["placements"] == 1


def test_the_same_thing_twice_is_a_tie_about_as_often_as_the_interval_says():
    pairs = [(series(noise(20, seed=2 * i)), series(noise(20, seed=2 * i + 1))) for i in range(200)]
    ties = sum(ratio_of_medians(*pair).verdict == "tie" for pair in pairs)
    assert ties >= 0.88 * 200  # nominal 0.95; a percentile bootstrap of few rounds covers a little less


def test_what_differs_between_runs_widens_the_interval():
    a, b = series(noise(40, 1.005, 0.001, seed=1)), series(noise(40, 1.0, 0.001, seed=2))
    assert ratio_of_medians(a, b).verdict == "faster"
    assert ratio_of_medians(a, b, between=0.01).verdict == "tie"


@pytest.mark.parametrize(("noise", "verdict"), [(math.inf, "tie"), (0.35, "slower")])
def test_two_of_ten_rounds_told_as_nothing_make_no_tie(noise, verdict):
    """They are stable, and their median is true: 0.52x was a tie, which counts as 1.00x."""
    baseline, candidate = [0.54] * 10, [3.84, 0.73, 1.03, 1.04, 1.21, 1.04, 0.01, 1.14, 0.01, 0.92]
    assert stability(candidate, 0.35) == "stable"
    assert ratio_of_medians(series(baseline), series(candidate), noise=noise).verdict == verdict
    ratio = ratio_of_runs(baseline, candidate, 0.0, noise)
    assert ratio.verdict == verdict and (noise == math.inf or ratio.high <= ratio.speedup * 1.35)


def test_a_speedup_is_that_of_the_medians_that_are_told_however_far_samples_lie_apart():
    slow_or_quick = [1.0, 4.0] * 5  # their median, 2.5, is nobody's
    found = ratio_of_medians(series([3.0] * 10), series(slow_or_quick), noise=0.35)
    assert found.speedup == pytest.approx(3.0 / 2.5) and found.low <= found.speedup <= found.high


def test_the_side_with_more_launches_says_how_far_two_runs_may_differ():
    class Timer(WallClock):
        def run_to_run_rel(self, median_ms, launches):
            return launches * 0.001 / median_ms

    def play(calls, first, waits):
        sides = {CANDIDATE: 1.0, "eager": 1.004}
        return {name: Round([], [], [ms] * calls, queue_full=True) for name, ms in sides.items()}

    device = torch.device("cpu")
    contest = InterleavedTiming(play, Timer(device), device, CV_TARGET)
    contest.run(calls=2)
    assert contest.record("eager")["run_to_run_rel"] == pytest.approx(0.001, rel=0.01)
    assert contest.comparison("eager")["verdict"] == "faster"
    contest.launches = {CANDIDATE: 1, "eager": 5}
    assert contest.record("eager")["run_to_run_rel"] == pytest.approx(0.005, rel=0.01)
    assert contest.comparison("eager")["verdict"] == "tie"


def test_a_ratio_of_two_runs_takes_both_sides_as_independent_and_either_as_another_run():
    a, b = noise(40, 2.0, seed=1), noise(40, 1.0, seed=2)
    ratio = ratio_of_runs(a, b, between=0.0)
    assert ratio.low < 2.0 < ratio.high and ratio.verdict == "faster"
    # the same drift on both sides cancels in rounds that are paired, and not in runs that are not
    drift = [1 + i / 40 for i in range(40)]
    assert ratio_of_medians(series(drift), series(drift)).high == 1.0 < ratio_of_runs(drift, drift, 0.0).high
    close = ratio_of_runs(noise(40, 1.015, 0.001, seed=1), noise(40, 1.0, 0.001, seed=2), between=0.01)
    assert close.verdict == "tie"


def test_wall_clock_times_the_call_and_nothing_else():
    clock = WallClock(torch.device("cpu"))
    slept = []
    before = [lambda: slept.append(time.sleep(0.1))] * 2
    draws = [lambda: time.sleep(0.1) or 0.02, lambda: time.sleep(0.1) or 0.04]
    played = clock.run(lambda s: time.sleep(s) or -s, draws, before)
    assert played.inputs == [0.02, 0.04] and played.outputs == [-0.02, -0.04] and len(slept) == 2
    assert 20 <= played.times_ms[0] < 40 <= played.times_ms[1] < 100


def test_how_long_a_side_waited_for_a_core_is_that_of_most_rounds():
    rounds = itertools.cycle([4.0, 4.0, 9.0])

    def play(calls, first, waits):
        return {"eager": Round([], [], [1.0] * calls), CANDIDATE: Round([], [], [1.0] * calls, waited=next(rounds))}

    timing = InterleavedTiming(play, WallClock(torch.device("cpu")), torch.device("cpu"), 0.5)
    timing.run(2)
    assert (timing.waited(CANDIDATE), timing.waited("eager")) == (4.0, 1.0)


def test_on_a_cpu_no_inputs_exist_before_the_call_that_is_timed():
    drawn, seen = [], []
    draws = [lambda i=i: drawn.append(i) or i for i in range(3)]
    WallClock(torch.device("cpu")).run(lambda i: seen.append(list(drawn)), draws, [lambda: None] * 3)
    assert seen == [[0], [0, 1], [0, 1, 2]]


def test_a_flush_on_a_cpu_is_as_large_as_its_last_level_caches():
    assert WallClock(torch.device("cpu")).describe()["flush_bytes"] == last_level_caches_bytes() >= 32 << 20


def test_every_last_level_cache_of_the_cpus_of_this_process_counts_once(tmp_path, monkeypatch):
    for cpu, shared_by in enumerate(("0-1", "0-1", "2-3", "2-3", "4")):
        for index, (size, of) in enumerate((("48K", str(cpu)), ("32768K", shared_by))):
            folder = tmp_path / f"cpu{cpu}/cache/index{index}"
            folder.mkdir(parents=True)
            (folder / "size").write_text(size + "\n")
            (folder / "shared_cpu_list").write_text(of + "\n")
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0, 1, 2, 3})
    assert last_level_caches_bytes(tmp_path) == 64 << 20
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {7})
    assert last_level_caches_bytes(tmp_path) == 32 << 20


def spins_s(host_s, waits, calls=8, rounds=4):
    """Of calls that take the host so long, after the spin where it waits for the device; and whether the last was."""
    rng, times, spins = np.random.default_rng(0), HostTimes(), []
    for _ in range(rounds):
        times.begin()
        for _ in range(calls):
            spins.append(times.spin_s)
            took_s = host_s * rng.uniform(1, 1.2) + (spins[-1] if waits else 0)
            full = took_s < spins[-1]
            times.learn(spins[-1], took_s, full)
    return spins, full


@pytest.mark.parametrize("host_ms", [0.05, 0.4, 0.6, 0.8, 1, 1.4, 1.6, 2, 2.4, 3, 4, 6, 10, 20, 40])
def test_the_device_is_held_until_the_host_has_enqueued_a_call_however_long_that_takes(host_ms):
    spins, full = spins_s(host_ms / 1e3, waits=False)
    assert full and spins[-1] <= max(0.5e-3, 2 * host_ms / 1e3)


@pytest.mark.parametrize("host_ms", [0.05, 0.4, 1, 2, 10])
def test_the_device_is_not_held_ever_longer_for_a_call_that_waits_for_it(host_ms):
    spins, full = spins_s(host_ms / 1e3, waits=True, calls=100, rounds=1)
    assert not full and max(spins) < 0.005 + 5 * host_ms / 1e3


HOGS_THE_GPU = """
import torch
x = torch.zeros(1 << 28, device="cuda")
for _ in range(1000): x.add_(1)
print(flush=True)
while True: x.add_(1)
"""


@pytest.fixture
def events():
    return CudaEvents(torch.device("cuda", 0))


@pytest.mark.gpu
def test_events_time_a_known_sleep_with_the_queue_full(events):
    clock_hz = torch.cuda.get_device_properties(0).clock_rate * 1e3
    call = lambda cycles: torch.cuda._sleep(cycles)  # noqa: E731
    draws = [lambda: int(clock_hz * 1e-3)] * 8
    events.run(call, draws, [lambda: None] * 8)  # learns the host's time
    played = events.run(call, draws, [lambda: None] * 8)
    assert played.queue_full and all(0.9 < t < 1.5 for t in played.times_ms)


@pytest.mark.gpu
def test_a_call_that_synchronises_is_seen_to_drain_the_queue(events):
    begin = time.perf_counter()
    played = events.run(lambda _: torch.cuda.synchronize(), [list] * 100, [lambda: None] * 100)
    assert not played.queue_full
    assert time.perf_counter() - begin < 1  # the spin does not grow with what waits for it


@pytest.mark.gpu
def test_a_call_that_is_not_held_has_its_launches_in_its_time(events):
    x, none = torch.zeros(1, device="cuda"), [lambda: None] * 20
    call = lambda _: [x.add_(1) for _ in range(50)]  # noqa: E731
    events.run(call, [list] * 20, none)
    held, free = (np.median(events.run(call, [list] * 20, none, held=held).times_ms) for held in (True, False))
    assert free > 1.2 * held and not events.run(call, [list] * 20, none, held=False).queue_full


@pytest.mark.gpu
def test_a_host_that_takes_long_is_waited_for(events):
    slow = lambda _: time.sleep(0.02)  # noqa: E731
    events.run(slow, [list] * 2, [lambda: None] * 2)
    assert events.run(slow, [list] * 4, [lambda: None] * 4).queue_full


@pytest.mark.gpu
@pytest.mark.parametrize("host_ms", [0.7, 1.4, 2, 2.4, 3.5])
def test_a_queue_fills_within_the_rounds_of_warming_up(events, host_ms):
    slow = lambda _: time.sleep(host_ms / 1e3)  # noqa: E731
    assert any([events.run(slow, [list] * 8, [lambda: None] * 8).queue_full for _ in range(4)])


@pytest.mark.gpu
def test_what_events_add_to_a_kernel_is_known(events):
    played = events.run(lambda _: None, [list] * 8, [lambda: None] * 8)
    assert 0.0005 < events.own_overhead_ms < 0.02
    assert events.overhead_ms(played.empty_ms) == pytest.approx(events.own_overhead_ms, abs=0.001)


@pytest.mark.gpu
def test_a_gpu_in_order_copies_at_the_rate_of_its_data_sheet(events):
    if limits_of_product(torch.cuda.get_device_name(0)) is None:
        pytest.skip("no data sheet is known of this GPU")
    assert 0.6 < events.bandwidth_fraction() < 1.3


@pytest.mark.gpu
def test_a_gpu_that_something_else_is_on_copies_slower(events):
    undisturbed_share = events.bandwidth_fraction()
    if undisturbed_share is None:
        pytest.skip("no data sheet is known of this GPU")
    with subprocess.Popen([sys.executable, "-c", HOGS_THE_GPU], stdout=subprocess.PIPE) as other:
        other.stdout.readline()
        shares = [events.bandwidth_fraction() for _ in range(5)]
        other.kill()
    assert np.median(shares) < 0.75 * undisturbed_share


class Copying(CudaEvents):
    """A device whose copies take so long, again and again at last; each advances the clock by as much."""

    def __init__(self, readings_ms, monkeypatch):
        self.left_ms, self.now_s = list(readings_ms), 0.0
        monkeypatch.setattr(cuda_events, "time", SimpleNamespace(monotonic=lambda: self.now_s))

    def _copies_ms(self, copies):
        taken_ms = self.left_ms.pop(0) if len(self.left_ms) > 1 else self.left_ms[0]
        self.now_s += taken_ms / 1e3
        return taken_ms


def test_a_device_is_waited_for_until_it_copies_as_it_can(monkeypatch):
    learned = [100.0, 90.0, 92.0, 91.0]  # 0.3 s of it
    device = Copying([91.0, *learned, 110.0, 104.0, 96.0, 91.0], monkeypatch)
    device.wait_for_bandwidth()
    assert device.left_ms == [110.0, 104.0, 96.0, 91.0], "nothing to wait for"
    device.wait_for_bandwidth()
    assert device.left_ms == [91.0]


def test_a_device_that_others_are_on_is_not_waited_for_for_long(monkeypatch):
    device = Copying([91.0, 90.0, 90.0, 90.0, 90.0, 180.0], monkeypatch)
    device.wait_for_bandwidth()
    device.wait_for_bandwidth()
    assert device.now_s < 5 * 0.091 + 0.5 + 0.2


@pytest.mark.gpu
def test_what_is_timed_once_a_device_has_settled_does_not_have_the_driver_clear_memory_beside_it(events):
    def copies_ms():
        return events.run(events._copy, [lambda: [20]] * 4, [lambda: None] * 4).times_ms

    def freed():
        torch.empty(torch.cuda.mem_get_info()[0] // 2, dtype=torch.uint8, device="cuda")
        torch.cuda.empty_cache()

    events.wait_for_bandwidth()
    usual_ms = np.median(copies_ms())
    freed()
    beside_ms = max(copies_ms())
    freed()
    events.wait_for_bandwidth()
    settled_ms = max(copies_ms())
    assert settled_ms < 1.06 * usual_ms, (usual_ms, beside_ms, settled_ms)


@pytest.mark.gpu
def test_a_busy_host_does_not_get_into_what_events_add():
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * os.cpu_count())]
    try:
        timers = [CudaEvents(torch.device("cuda", 0)) for _ in range(10)]
        measured = [timer.own_overhead_ms for timer in timers]
        rounds = [timer.run(lambda _: None, [list] * 8, [lambda: None] * 8) for timer in timers]
        measured += [timer.overhead_ms(played.empty_ms) for timer, played in zip(timers, rounds)]
    finally:
        for process in busy:
            process.kill()
            process.wait()
    assert max(measured) < min(measured) + 0.001


@pytest.mark.gpu
def test_each_launch_widens_how_far_two_runs_may_differ(events):
    assert events.run_to_run_rel(1.0, 1) == pytest.approx(0.005, abs=0.001)
    assert events.run_to_run_rel(0.01, 4) > events.run_to_run_rel(0.01, 1) > 0.015


@pytest.mark.gpu
def test_a_profile_names_the_kernels_of_each_call(events):
    x = torch.randn(1 << 20, device="cuda")
    calls = events.profile(lambda _: x.relu().sum(), [[]] * 3, [lambda: None] * 3)
    assert len(calls) == 3
    for kernels in calls:
        names = [kernel.name for kernel in kernels]
        assert any("clamp" in name for name in names) and any("reduce" in name for name in names)
        assert all(0 < kernel.ms < 1 and math.prod(kernel.block) > 0 for kernel in kernels if kernel.grid)
        assert not any(kernel.aside for kernel in kernels)


@pytest.mark.gpu
def test_a_profile_tells_what_ran_on_other_streams_than_the_calls(events):
    x, side = torch.randn(1 << 20, device="cuda"), torch.cuda.Stream()
    into = torch.empty_like(x)

    def call(_):
        own = torch.cuda.current_stream()
        y = x.relu()
        side.wait_stream(own)
        with torch.cuda.stream(side):
            z = y.sigmoid()
            into.copy_(y)
        own.wait_stream(side)
        return y + z

    calls = events.profile(call, [[]] * 3, [lambda: None] * 3)
    assert [[activity.aside for activity in ran] for ran in calls] == [[False, True, True, False]] * 3
    found = breakdown(calls)
    assert (found["launches"], found["side_launches"]) == (4, 2)


@pytest.mark.gpu
def test_nothing_behind_a_gate_runs_before_it_is_opened():
    from harness.timing.gate import Gate

    gate = Gate(Gate.file())
    x = torch.zeros(1, device="cuda")
    x.add_(0)  # a kernel is loaded when it is first launched, which waits for the device
    gate.hold(1)
    x.add_(1)
    gate.mark(1)
    with pytest.raises(TimeoutError):
        gate.await_mark(1, timeout_s=0.2)
    gate.open(1)
    gate.await_mark(1, timeout_s=5)
    assert x.item() == 1
    gate.close()


def test_what_a_candidate_has_set_aside_of_l2_is_taken_back_before_a_call(monkeypatch):
    told = []
    driver = SimpleNamespace(
        cuCtxResetPersistingL2Cache=lambda: told.append("reset"),
        cuCtxSetLimit=lambda limit, size: told.append((limit, size.value)),
    )
    monkeypatch.setattr(cuda_events.cuda_driver, "library", lambda: driver)
    cuda_events._clear_persisting_l2()
    assert told == ["reset", (6, 0)]
