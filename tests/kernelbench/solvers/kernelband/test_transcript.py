"""Twenty-five iterations of algorithm 1 worked out by hand, with one cluster until t = 10 and masks from then on.

Strategies are written T V F P R A in the order of table 6. Rewards are chosen: V 0.2, F 0.5, P 0.1, R 0.0, A 0.3, and
tiling fails. Among equal indices the first arm wins.
"""

import math

import pytest

from kernelbench.solvers.kernelband import bandit, clusters
from kernelbench.solvers.kernelband.bandit import Kernel, Outcome, State
from kernelbench.solvers.kernelband.settings import Settings
from kernelbench.solvers.kernelband.strategies import STRATEGIES

LETTER = dict(zip(STRATEGIES, "TVFPRA"))
REWARD = {"T": None, "V": 0.2, "F": 0.5, "P": 0.1, "R": 0.0, "A": 0.3}
SETTINGS = Settings(k=1, tau=10, ties="first", exploration=0.5)

# t, and what is chosen. With c = 0.5 the bonus is 0.5 sqrt(ln t / N).
#  1: all indices are 0.5, so T; it fails, its mean is (0.5 + 0) / 2 = 0.25
#  2: 0.5 + 0.5 sqrt(0.6931) = 0.9163 for the five untried; V, mean 0.35
#  3: F (1.0241), 0.5; V has 0.35 + 0.5 sqrt(1.0986 / 2) = 0.7206. 4: P, 0.3. 5: R, 0.25. 6: A, 0.4: all are tried once
#  7: N = 2 for all, bonus 0.4932: F with the best mean, 0.9932; now N = 3, mean 0.5
#  8: A 0.4 + 0.5098 = 0.9098, F 0.5 + 0.4163 = 0.9163: F again, N = 4
#  9: A 0.4 + 0.5241 = 0.9241, F 0.5 + 0.3706 = 0.8706: A, N = 3, mean 1.1 / 3 = 0.3667
# 10: one cluster is made and its centre profiled: DRAM is saturated, so V, F and A are masked. Left: P 0.3 + 0.5365 =
#     0.8365, T and R 0.25 + 0.5365: P, N = 3, mean 0.7 / 3 = 0.2333
# 11: T and R 0.25 + 0.5475 = 0.7975, P 0.2333 + 0.4470: T fails, N = 3, mean 0.5 / 3 = 0.1667
# 12: R 0.25 + 0.5573 = 0.8073: N = 3, mean 0.1667
# 13: bonus 0.4623 at N = 3: P 0.6956, N = 4, mean 0.2. 14: T 0.1667 + 0.4690 = 0.6356, as R, P 0.2 + 0.4061: T, N = 4,
#     mean 0.125
# 15: R 0.1667 + 0.4750, N = 4, mean 0.125. 16: N = 4 for all, P 0.2: N = 5, mean 0.18
# 17: T 0.125 + 0.4208 = 0.5458, as R; P 0.18 + 0.3764 = 0.5564: P, N = 6, mean 1.0 / 6 = 0.1667
# 18: T 0.125 + 0.4250 = 0.5500, P 0.1667 + 0.3470 = 0.5137: T, N = 5, mean 0.1. 19: R 0.5540, N = 5, mean 0.1
# 20: clusters again, and the new centre's SM is saturated: T and P are masked, V, F, A and R are left.
#     F 0.5 + 0.5 sqrt(2.9957 / 4) = 0.9327, A 0.3667 + 0.4996 = 0.8663, V 0.35 + 0.6119 = 0.9619: V, N = 3, mean 0.3
# 21: F 0.5 + 0.4362 = 0.9362, A 0.3667 + 0.5037 = 0.8704, V 0.3 + 0.5037: F, N = 5
# 22: F 0.5 + 0.3931 = 0.8931, A 0.3667 + 0.5075 = 0.8742: F, N = 6. 23: A 0.8779, F 0.5 + 0.3614 = 0.8614: A, N = 4,
#     mean 0.35
# 24: F 0.5 + 0.3639 = 0.8639, V 0.3 + 0.5146 = 0.8146, A 0.35 + 0.4457 = 0.7957: F, N = 7
# 25: F 0.5 + 0.3391 = 0.8391, V 0.3 + 0.5179 = 0.8179: F
CHOSEN = "TVFPRAFFAPTRPTRPPTRVFFAFF"
SATURATED = {10: {"sm": 0.1, "dram": 0.9, "l2": 0.1}, 20: {"sm": 0.9, "dram": 0.1, "l2": 0.1}}


def played():
    """Play the transcript; yields iteration, state before the choice, and the choice."""
    state = State(kernels={0: Kernel(0, 1.0, (0.0,))}, clusters=[[0]])
    for iteration in range(1, 26):
        if bandit.due(state, iteration, SETTINGS):
            clusters.recluster(state, SETTINGS)
            state.signatures[state.centres[0]] = SATURATED[iteration]
        cluster, strategy = bandit.choose_arm(state, iteration, SETTINGS, rng=None)
        yield iteration, state, LETTER[strategy]
        parent = state.clusters[cluster][-1]
        gained = REWARD[LETTER[strategy]]
        verified = gained is not None
        state.outcomes.append(Outcome(iteration, parent, strategy, gained or 0.0, verified, state.era))
        if verified:
            sample = max(state.kernels) + 1
            state.kernels[sample] = Kernel(sample, state.kernels[parent].ms * (1 - gained), (float(sample),))
            clusters.join(state, sample, parent, SETTINGS)


def test_the_strategies_are_those_worked_out_by_hand():
    assert "".join(chosen for _, _, chosen in played()) == CHOSEN


def test_clusters_are_made_before_iterations_10_and_20_only():
    eras = {iteration: state.era for iteration, state, _ in played()}
    assert [t for t in range(2, 26) if eras[t] > eras[t - 1]] == [10, 20]


@pytest.mark.parametrize(
    "iteration, strategy, count, mean",
    [(7, "tiling", 2, 0.25), (9, "fusion", 4, 0.5), (10, "access_layout", 3, 1.1 / 3), (13, "reordering", 3, 0.5 / 3),
     (18, "pipeline", 6, 1.0 / 6), (20, "tiling", 5, 0.1), (24, "access_layout", 4, 0.35), (25, "fusion", 7, 0.5)],
)  # fmt: skip
def test_counts_and_means_are_those_worked_out_by_hand(iteration, strategy, count, mean):
    for t, state, _ in played():
        if t == iteration:
            arm = bandit.arms(state, SETTINGS)[0, strategy]
            assert arm.count == count and math.isclose(arm.mean, mean)
