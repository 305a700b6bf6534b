"""Clusters of kernels by standardised features."""

import numpy
import pytest

from kernelbench.solvers.kernelband import clusters
from kernelbench.solvers.kernelband.bandit import Kernel, State
from kernelbench.solvers.kernelband.settings import Settings

pytest.importorskip("sklearn")

# three groups that differ in the first two features; the third is not known, the fourth is the same for all
POINTS = {1: (0, 0), 2: (0.1, 0), 3: (0.3, 0), 4: (10, 0), 5: (10.1, 0), 6: (5, 9), 7: (5.2, 9)}


def kernels():
    return {sample: Kernel(sample, 1.0, (x, y, None, 128)) for sample, (x, y) in POINTS.items()}


def test_features_have_mean_0_and_deviation_1_and_what_is_not_known_is_0():
    points = clusters.standardised(list(kernels().values()))
    assert points[:, :2].mean(0) == pytest.approx(0, abs=1e-12) and points[:, :2].std(0) == pytest.approx(1)
    assert not points[:, 2:].any()
    partly = clusters.standardised([Kernel(1, 1.0, (1.0,)), Kernel(2, 1.0, (None,)), Kernel(3, 1.0, (3.0,))])
    assert numpy.array_equal(partly, [[-1.0], [0.0], [1.0]])


def test_kernels_that_behave_alike_are_one_cluster_and_the_middle_one_is_its_centre():
    state = State(kernels=kernels())
    clusters.recluster(state, Settings(k=3))
    assert sorted(map(sorted, state.clusters)) == [[1, 2, 3], [4, 5], [6, 7]]
    assert state.centres[[sorted(cluster) for cluster in state.clusters].index([1, 2, 3])] == 2
    assert state.era == 1
    again = State(kernels=kernels())
    clusters.recluster(again, Settings(k=3))
    assert again == state


def test_there_are_no_more_clusters_than_different_kernels():
    state = State(kernels={sample: Kernel(sample, 1.0, (1.0,)) for sample in range(6)})
    clusters.recluster(state, Settings(k=3))
    assert state.clusters == [[0, 1, 2, 3, 4, 5]] and len(state.centres) == 1


@pytest.mark.parametrize("rule, joined", [("nearest", {4, 5, 8}), ("parent", {1, 2, 3, 8})])
def test_a_new_kernel_joins_the_nearest_centre_or_its_parent(rule, joined):
    state = State(kernels=kernels())
    clusters.recluster(state, Settings(k=3))
    state.kernels[8] = Kernel(8, 1.0, (9.5, 0.5, None, 128))
    clusters.join(state, 8, 1, Settings(join=rule))
    assert joined in [set(cluster) for cluster in state.clusters]


def test_before_the_first_clustering_all_kernels_are_one_cluster():
    state = State()
    for sample in (1, 2):
        clusters.join(state, sample, None, Settings())
    assert state.clusters == [[1, 2]]
