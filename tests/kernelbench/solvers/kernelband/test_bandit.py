"""The bandit of KernelBand against figures worked out by hand."""

import math
import random

import pytest

from kernelbench.solvers.kernelband import bandit
from kernelbench.solvers.kernelband.bandit import Arm, Kernel, Outcome, State
from kernelbench.solvers.kernelband.settings import Settings, UnknownSetting
from kernelbench.solvers.kernelband.strategies import STRATEGIES, TARGETS

FIRST = Settings(ties="first")


def state(clusters, **fields):
    kernels = {sample: Kernel(sample, 1.0 + sample) for cluster in clusters for sample in cluster}
    return State(kernels=kernels, clusters=[list(cluster) for cluster in clusters], **fields)


@pytest.mark.parametrize("before, after, expected", [(2.0, 1.0, 0.5), (2.0, 2.0, 0.0), (2.0, 3.0, 0.0), (1.0, 0, 1.0)])
def test_the_reward_is_the_share_of_the_time_that_was_saved(before, after, expected):
    assert bandit.reward(before, after) == expected


def test_an_arm_starts_with_one_visit_and_a_mean_of_one_half():
    assert set(bandit.arms(state([[1]]), FIRST).values()) == {Arm(1, 0.5)}


def test_the_mean_runs_as_algorithm_1_has_it():
    # N = 2, mean 0.5 + (0.3 - 0.5) / 2 = 0.4; then N = 3, 0.4 + (0.1 - 0.4) / 3 = 0.3
    outcomes = [Outcome(1, 1, "tiling", 0.3, True), Outcome(2, 1, "tiling", 0.1, True)]
    arm = bandit.arms(state([[1]], outcomes=outcomes), FIRST)[0, "tiling"]
    assert arm.count == 3 and arm.mean == pytest.approx(0.3)


@pytest.mark.parametrize("failures, expected", [("update", Arm(2, 0.25)), ("skip", Arm(1, 0.5))])
def test_a_failure_counts_as_no_reward_or_not_at_all(failures, expected):
    outcomes = [Outcome(1, 1, "tiling", 0.0, False)]
    assert bandit.arms(state([[1]], outcomes=outcomes), Settings(failures=failures))[0, "tiling"] == expected


def test_outcomes_follow_their_kernel_into_new_clusters_or_are_forgotten():
    outcomes = [Outcome(1, 1, "fusion", 0.4, True, era=0), Outcome(2, 2, "fusion", 0.2, True, era=1)]
    both = state([[1], [2]], outcomes=outcomes, era=1)
    assert bandit.arms(both, Settings(recluster="carry"))[0, "fusion"] == Arm(2, 0.45)
    assert bandit.arms(both, Settings(recluster="reset"))[0, "fusion"] == Arm(1, 0.5)
    assert bandit.arms(both, Settings(recluster="reset"))[1, "fusion"] == Arm(2, 0.35)


@pytest.mark.parametrize("iteration, count, expected", [(1, 1, 0.5), (10, 1, 3.534854), (10, 4, 2.017427)])
def test_the_index_is_mean_plus_exploration(iteration, count, expected):
    # 0.5 + 2 sqrt(ln t / N)
    assert bandit.index_of(Arm(count, 0.5), iteration, FIRST) == pytest.approx(expected, abs=1e-6)


def test_strategies_of_a_saturated_resource_are_masked_in_that_cluster_only():
    signatures = {1: {"sm": 0.8, "dram": 0.2, "l2": 0.1}, 2: {"sm": 0.1, "dram": 0.75, "l2": 0.74}}
    masked = bandit.mask(state([[1], [2]], centres=[1, 2], signatures=signatures), FIRST)
    assert {s for s in STRATEGIES if not masked[0, s]} == {"tiling", "pipeline"}
    assert {s for s in STRATEGIES if not masked[1, s]} == {"vectorization", "fusion", "access_layout"}


def test_nothing_is_masked_before_a_profile_or_where_everything_would_be():
    assert all(bandit.mask(state([[1]]), FIRST).values())
    everything = dict.fromkeys(("sm", "dram", "l2"), 0.9)
    assert all(bandit.mask(state([[1]], centres=[1], signatures={1: everything}), FIRST).values())


def test_a_counter_that_is_not_known_masks_nothing():
    masked = bandit.mask(state([[1]], centres=[1], signatures={1: {"sm": 0.9}}), FIRST)
    assert not masked[0, "tiling"] and masked[0, "reordering"]


def test_kernels_with_more_headroom_are_taken_more_often():
    # V = 0.75 - h: 0.5 and 0.1, so P = 1 / (1 + exp(-0.4)) = 0.598688 and 0.401312
    two = state([[1, 2]], centres=[1], signatures={1: {"dram": 0.25}, 2: {"dram": 0.65}})
    values = bandit.potentials(two, 0, "fusion", FIRST)
    assert values == pytest.approx([0.5, 0.1])
    assert bandit.probabilities(values) == pytest.approx([0.598688, 0.401312], abs=1e-6)
    rng = random.Random(1)
    share = sum(bandit.choose_kernel(two, 0, "fusion", FIRST, rng) == 1 for _ in range(4000)) / 4000
    assert share == pytest.approx(0.598688, abs=0.03)
    percent = bandit.probabilities(bandit.potentials(two, 0, "fusion", Settings(unit="percent")))
    assert percent[1] == pytest.approx(math.exp(-40), rel=1e-6)


def test_a_kernel_that_was_not_profiled_has_the_signature_of_its_centre():
    two = state([[1, 2, 3]], centres=[1], signatures={1: {"sm": 0.25}, 3: {"sm": 0.5}})
    assert bandit.potentials(two, 0, "tiling", FIRST) == [0.5, 0.5, 0.25]
    assert bandit.potentials(two, 0, "reordering", FIRST) is None


@pytest.mark.parametrize("rule, expected", [("recent", {3}), ("fastest", {1}), ("uniform", {1, 2, 3})])
def test_without_anything_to_tell_kernels_apart(rule, expected):
    three, rng = state([[1, 2, 3]]), random.Random(0)
    assert {bandit.choose_kernel(three, 0, "tiling", Settings(unprofiled=rule), rng) for _ in range(50)} == expected


def test_without_profiling_the_most_recent_kernel_is_taken():
    profiled = state([[1, 2]], centres=[1], signatures={1: {"sm": 0.0}, 2: {"sm": 0.7}})
    assert bandit.choose_kernel(profiled, 0, "tiling", Settings(profile="off"), random.Random(0)) == 2


@pytest.mark.parametrize(
    "iteration, kernels, expected",
    [(9, 6, False), (10, 5, False), (10, 6, True), (11, 9, False), (20, 6, True), (20, 5, False)],
)
def test_clusters_are_made_every_ten_iterations_from_2_k_kernels_on(iteration, kernels, expected):
    assert bandit.due(state([range(kernels)]), iteration, Settings(k=3, tau=10)) is expected


def test_options_are_read_and_checked():
    assert Settings.of({"k": "1", "exploration": "0.5", "other": "x"}) == Settings(k=1, exploration=0.5)
    assert Settings.of({"targets": "fusion:l2"}).targets == TARGETS | {"fusion": "l2"}
    for wrong in ({"k": "x"}, {"k": "0"}, {"failures": "no"}, {"targets": "fusion:tensor"}):
        with pytest.raises(UnknownSetting):
            Settings.of(wrong)
