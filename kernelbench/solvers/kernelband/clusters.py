"""Clusters of kernels that behave alike: k-means over standardised features (section 3.3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy

from kernelbench.solvers.kernelband.bandit import Kernel, State
from kernelbench.solvers.kernelband.settings import Settings

_RESTARTS = 10  # of k-means; scikit-learn's default until 1.4
_SEED = 0  # the same kernels give the same clusters


class NoScikitLearn(RuntimeError):
    """Clustering needs a package that is not installed."""


def standardised(kernels: Sequence[Kernel]) -> numpy.ndarray:
    """Return an array [kernels, features] with mean 0 and deviation 1 a feature.

    A value that is not known counts as the mean; a feature that is the same for all, or known of none, as 0.
    """
    raw = numpy.array([[numpy.nan if x is None else float(x) for x in kernel.features] for kernel in kernels])
    known = ~numpy.isnan(raw)
    counts = numpy.maximum(known.sum(0), 1)
    means = numpy.where(known, raw, 0.0).sum(0) / counts
    centred = numpy.where(known, raw - means, 0.0)
    deviations = numpy.sqrt((centred**2).sum(0) / counts)
    constant = deviations <= 1e-12 * numpy.maximum(1.0, numpy.abs(means))
    return numpy.where(constant, 0.0, centred / numpy.where(constant, 1.0, deviations))


def recluster(state: State, settings: Settings) -> None:
    """Divide the kernels of ``state`` into at most K clusters; the kernel nearest to the mean is a cluster's centre."""
    kernels = list(state.kernels.values())
    points = standardised(kernels)
    labels = _k_means(points, min(settings.k, len(numpy.unique(points, axis=0))))
    state.clusters, state.centres = [], []
    for label in sorted(set(labels), key=list(labels).index):
        members = numpy.flatnonzero(labels == label)
        distances = ((points[members] - points[members].mean(0)) ** 2).sum(1)
        state.clusters.append([kernels[i].sample for i in members])
        state.centres.append(kernels[members[int(distances.argmin())]].sample)
    state.era += 1


def join(state: State, sample: int, parent: int | None, settings: Settings) -> None:
    """Put a new kernel of ``state`` into the cluster of its parent, or of the centre that is nearest."""
    if not state.centres:
        state.clusters[0].append(sample)
        return
    if settings.join == "parent" and parent is not None:
        index = next(i for i, cluster in enumerate(state.clusters) if parent in cluster)
    else:
        kernels = list(state.kernels.values())
        point = dict(zip((kernel.sample for kernel in kernels), standardised(kernels)))
        distances = [float(((point[sample] - point[centre]) ** 2).sum()) for centre in state.centres]
        index = distances.index(min(distances))
    state.clusters[index].append(sample)


def _k_means(points: numpy.ndarray, clusters: int) -> numpy.ndarray:
    if clusters == 1:
        return numpy.zeros(len(points), dtype=int)
    try:
        from sklearn.cluster import KMeans
    except ImportError:
        raise NoScikitLearn("clustering kernels needs scikit-learn: pip install 'kernelbench[search]'") from None
    return KMeans(clusters, n_init=_RESTARTS, random_state=_SEED).fit_predict(points)
