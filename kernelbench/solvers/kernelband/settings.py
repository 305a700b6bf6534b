"""Constants of KernelBand with their sources, and the points that the paper leaves open, as options of ``--set``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from kernelbench.solvers.kernelband.strategies import DRAM, L2, SM, TARGETS


class UnknownSetting(ValueError):
    """A value that an option of ``--set`` does not have."""


@dataclass(frozen=True)
class Settings:
    """Every constant and choice. Section numbers are the paper's; "open" marks what it does not say.

    Attributes
    ----------
    k, tau
        Clusters, and iterations between two clusterings: 3 and 10 (section 3.6).
    exploration
        c of equation 6: 2.0 (section 3.6).
    saturation
        Share of a resource's peak from which strategies that target it are masked: 0.75 (section 3.6).
    prior_count, prior_mean
        N and the mean of an arm without an outcome: 1 and 0.5 (algorithm 1, line 2).
    failures
        ``update``: a failure counts with reward 0 (section 2.2). ``skip``: only verified kernels do (algorithm 1).
    recluster
        Open. ``carry``: outcomes are summed anew over the new clusters. ``reset``: arms start again.
    profile
        ``centroids`` are profiled when clusters are made (section 3.3), or ``all`` kernels. ``off``: none are, nothing
        is masked, and within a cluster the most recent kernel is taken (appendix J).
    select
        ``ucb``, or ``llm``: the model names the strategy (appendix J).
    join
        Open: the cluster of a kernel made after a clustering, that of the ``nearest`` centroid or of its ``parent``.
    unprofiled
        How a kernel is taken where equal potentials tell none apart: the most ``recent``, as appendix J breaks ties;
        or ``uniform``, the softmax by the letter, or the ``fastest``.
    ties
        Open: arms with equal indices, as all are at t = 1: ``random`` or the ``first``.
    unit
        Open: whether throughput enters the softmax as ``fraction`` or in ``percent``, where it is all but an argmax.
    temperature, max_tokens
        Of the model: 1.0 and 16,384 (appendix C).
    targets
        Resource of each strategy.
    """

    k: int = 3
    tau: int = 10
    exploration: float = 2.0
    saturation: float = 0.75
    prior_count: int = 1
    prior_mean: float = 0.5
    failures: str = "update"
    recluster: str = "carry"
    profile: str = "centroids"
    select: str = "ucb"
    join: str = "nearest"
    unprofiled: str = "recent"
    ties: str = "random"
    unit: str = "fraction"
    temperature: float = 1.0
    max_tokens: int = 16384
    targets: Mapping[str, str] = None

    def __post_init__(self) -> None:
        if self.targets is None:
            object.__setattr__(self, "targets", TARGETS)
        if self.k < 1 or self.tau < 1 or self.prior_count < 1:
            raise UnknownSetting("k, tau and prior_count must be at least 1")

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Settings:
        """Read what ``kb solve --set`` gave; ``targets=tiling:dram,fusion:l2`` changes those strategies.

        Other keys are left to others. Raises UnknownSetting.
        """
        given = {}
        for field in fields(cls):
            if field.name not in options:
                continue
            text = options[field.name]
            given[field.name] = _targets(text) if field.name == "targets" else _value(field.name, text)
        return cls(**given)


CHOICES = {
    "failures": ("update", "skip"),
    "recluster": ("carry", "reset"),
    "profile": ("centroids", "all", "off"),
    "select": ("ucb", "llm"),
    "join": ("nearest", "parent"),
    "unprofiled": ("uniform", "recent", "fastest"),
    "ties": ("random", "first"),
    "unit": ("fraction", "percent"),
}
_WHOLE = ("k", "tau", "prior_count", "max_tokens")


def _value(name: str, text: str) -> int | float | str:
    if name in CHOICES:
        if text not in CHOICES[name]:
            raise UnknownSetting(f"--set {name}={text}: it is one of {', '.join(CHOICES[name])}")
        return text
    try:
        return int(text) if name in _WHOLE else float(text)
    except ValueError:
        raise UnknownSetting(f"--set {name}={text}: it is a number") from None


def _targets(text: str) -> dict[str, str]:
    found = dict(TARGETS)
    for part in filter(None, text.split(",")):
        strategy, _, resource = part.partition(":")
        if strategy not in TARGETS or resource not in (SM, DRAM, L2):
            raise UnknownSetting(
                f"--set targets={text}: write STRATEGY:RESOURCE with {', '.join(TARGETS)} and {SM}, {DRAM}, {L2}"
            )
        found[strategy] = resource
    return found
