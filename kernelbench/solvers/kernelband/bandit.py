"""The masked bandit: arms, indices, rewards and the choice of a kernel. Pure functions of kernels and outcomes."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kernelbench.solvers.kernelband.settings import Settings

Signature = Mapping[str, float]  # resource -> share of its peak, from 0 to 1


@dataclass(frozen=True)
class Kernel:
    """A verified kernel: the sample that holds it, its time, and what clustering sees of it (``features``, raw)."""

    sample: int
    ms: float
    features: tuple[float | None, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """Outcome of one iteration: the kernel that was expanded, the strategy, its reward, and whether it was verified.

    ``era`` counts the clusterings before it.
    """

    iteration: int
    kernel: int  # sample
    strategy: str
    reward: float
    verified: bool
    era: int = 0


@dataclass(frozen=True)
class Arm:
    """Visit count N and mean reward of a cluster and a strategy."""

    count: float
    mean: float


@dataclass
class State:
    """Everything that the next decision depends on, and that a replay of the journal makes again.

    ``clusters`` holds samples; ``signatures`` is by sample, of the kernels that were profiled; ``centres`` are the
    samples that represent the clusters, empty before the first clustering.
    """

    kernels: dict[int, Kernel] = field(default_factory=dict)
    outcomes: list[Outcome] = field(default_factory=list)
    clusters: list[list[int]] = field(default_factory=lambda: [[]])
    centres: list[int] = field(default_factory=list)
    signatures: dict[int, Signature] = field(default_factory=dict)
    era: int = 0


def reward(before_ms: float, after_ms: float) -> float:
    """Return the share of its time that a kernel has lost, between 0 and 1 (section 2.2)."""
    return min(1.0, max(0.0, (before_ms - after_ms) / before_ms))


def arms(state: State, settings: Settings) -> dict[tuple[int, str], Arm]:
    """Return every arm: outcomes of the kernels in a cluster, on top of the prior.

    The prior counts as ``prior_count`` rewards of ``prior_mean``, as the running mean of algorithm 1 has it.
    """
    cluster_of = {sample: index for index, cluster in enumerate(state.clusters) for sample in cluster}
    found = {}
    for index in range(len(state.clusters)):
        for strategy in settings.targets:
            rewards = [
                outcome.reward
                for outcome in state.outcomes
                if outcome.strategy == strategy
                and cluster_of.get(outcome.kernel) == index
                and (outcome.verified or settings.failures == "update")
                and (settings.recluster == "carry" or outcome.era == state.era)
            ]
            count = settings.prior_count + len(rewards)
            total = settings.prior_count * settings.prior_mean + math.fsum(rewards)
            found[index, strategy] = Arm(count, total / count)
    return found


def index_of(arm: Arm, iteration: int, settings: Settings) -> float:
    """Return the upper confidence bound of an arm (equation 6)."""
    return arm.mean + settings.exploration * math.sqrt(math.log(iteration) / arm.count)


def mask(state: State, settings: Settings) -> dict[tuple[int, str], bool]:
    """Return which arms may be chosen: their strategy's resource is not saturated in the cluster's centre (equation 5).

    Without a profile nothing is masked. Where everything would be, nothing is: one arm must be chosen.
    """
    found = {
        (index, strategy): _below(signature_of_centre(state, index), settings.targets[strategy], settings)
        for index in range(len(state.clusters))
        for strategy in settings.targets
    }
    return found if any(found.values()) else dict.fromkeys(found, True)


def _below(signature: Signature | None, resource: str, settings: Settings) -> bool:
    return signature is None or resource not in signature or signature[resource] < settings.saturation


def signature_of_centre(state: State, index: int) -> Signature | None:
    """Return the signature of a cluster's representative; None before there is one."""
    return state.signatures.get(state.centres[index]) if index < len(state.centres) else None


def choose_arm(state: State, iteration: int, settings: Settings, rng: random.Random) -> tuple[int, str]:
    """Return the cluster and the strategy with the largest index among those that are not masked."""
    known, allowed = arms(state, settings), mask(state, settings)
    indices = {
        key: index_of(arm, iteration, settings) for key, arm in known.items() if allowed[key] and state.clusters[key[0]]
    }
    best = max(indices.values())
    tied = [key for key, value in indices.items() if math.isclose(value, best, rel_tol=1e-12)]
    return tied[0] if settings.ties == "first" else rng.choice(tied)


def potentials(state: State, cluster: int, strategy: str, settings: Settings) -> list[float] | None:
    """Return the headroom V of each kernel of a cluster; None where no throughput is known.

    A kernel that was not profiled has that of its cluster's centre.
    """
    of_centre = signature_of_centre(state, cluster)
    resource = settings.targets[strategy]
    shares = [state.signatures.get(sample, of_centre) for sample in state.clusters[cluster]]
    if any(share is None or resource not in share for share in shares):
        return None
    scale = 100.0 if settings.unit == "percent" else 1.0
    return [scale * (settings.saturation - share[resource]) for share in shares]


def probabilities(values: Sequence[float]) -> list[float]:
    """Return the softmax of ``values``."""
    largest = max(values)
    weights = [math.exp(value - largest) for value in values]
    return [weight / math.fsum(weights) for weight in weights]


def choose_kernel(state: State, cluster: int, strategy: str, settings: Settings, rng: random.Random) -> int:
    """Return the sample of the kernel to expand: with a chance that grows with its headroom (algorithm 1, line 16)."""
    members = state.clusters[cluster]
    if settings.profile == "off":
        return members[-1]  # the most recent
    known = potentials(state, cluster, strategy, settings)
    if known is None or len(set(known)) == 1:
        if settings.unprofiled == "recent":
            return members[-1]
        if settings.unprofiled == "fastest":
            return min(members, key=lambda sample: (state.kernels[sample].ms, sample))
    weights = probabilities(known) if known else [1.0] * len(members)
    return rng.choices(members, weights)[0]


def due(state: State, iteration: int, settings: Settings) -> bool:
    """Return whether clusters are made anew before iteration t: every tau iterations, from 2 K kernels on."""
    return iteration % settings.tau == 0 and len(state.kernels) >= 2 * settings.k
