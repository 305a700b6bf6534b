"""Constants of the landscape, each with its source or marked as an assumption.

[K] is KernelBench (2025), [M] the muCUTLASS paper, [B] KernelBand (2025). Nothing here was fitted to a
result of a strategy with guidance: authors are fitted to flat refinement alone, see ``AUTHORS``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

# [B] section 3.6: the strategies, and the resources whose throughput is profiled (appendix A.1).
LEVERS = ("tiling", "vectorization", "fusion", "pipeline", "reordering", "access & layout")
RESOURCES = ("SM", "DRAM", "L2")
# The resource that a lever works on, as KernelBand is run here. In a problem it is another with 1 - ON_TARGET.
TARGETS = ("SM", "DRAM", "DRAM", "SM", "L2", "DRAM")
ON_TARGET = 0.7  # assumption: a table for all kernels is right for most, not for all
# [B] table 3, "Succ": the chance that an application is correct and faster (DeepSeek-V3.2, Triton).
SUCCESS = (0.144, 0.571, 0.750, 0.644, 0.487, 0.295)
# [B] table 3, "Best": how often a success was part of the final best kernel. Potentials share as these do.
POTENTIAL = (0.615, 0.171, 0.552, 0.263, 0.253, 0.192)
SHARE_CONCENTRATION = 4.0  # assumption: of the Dirichlet draw of a problem's shares; lower is more uneven

# [M] section 6.5: the FP16 speed of light is 7.46 times as fast as PyTorch, in the geometric mean of 59 problems.
LOG_HEADROOM = math.log(7.46)
SD_LOG_HEADROOM = 0.9  # assumption: between problems
LEAST_HEADROOM = 1.1  # no baseline beats the bound
# [M] section 6.5: the best of all variants and runs is 3.91 times as fast, 7.46 / 3.91 = 1.91 above the bound.
LOG_EXCESS_OF_LIMIT = math.log(0.75)  # of (limit / bound - 1); below 0.91, as those runs need not have reached it
SD_LOG_EXCESS_OF_LIMIT = 0.5  # assumption
# [M] section 6.1: with GPT-5-mini and raw CUDA 29 of 59 problems stay under 0.5 after 40 attempts.
LOG_NAIVE_SLOWDOWN = math.log(10.0)  # assumption: a kernel without any lever, over PyTorch
SD_LOG_NAIVE_SLOWDOWN = 1.0  # assumption
COMPUTE_BOUND = 0.5  # assumption: share of problems
FP16_OVER_TF32 = 2.0  # H100: 989.4 over 494.7 TFLOP/s, dense
SLACK = (0.2, 0.9)  # assumption: ideal time of a resource that does not bind, over that of the one that does
OVERLAP = 4.0  # assumption: exponent p of t = (sum of T_r^p)^(1/p); infinity would be a perfect roofline
BASELINE_MS, SD_LOG_BASELINE = 1.0, 1.0  # the scale, which nothing depends on

# Success of an implementation, in log odds.
SD_PROBLEM = 1.4  # between problems: [K] table 9, R1's 67 %, 62 % and 8 % of the three levels, in log odds
SD_LEVER = 0.7  # assumption: between levers of a problem
LESSON_BONUS = 0.3  # assumption: for a lever whose success is described in the prompt
MOST_REPAIRS = 3  # assumption: failures in a row that still teach
FIRST_LOG_ODDS = 0.4  # [K] table 9: 67 % of R1's first attempts at level 1 are correct, 62 % at level 2; 8 % at level 3
SLOWER_FAILURES = 1 / 3  # assumption: failures of table 3 that are correct and slower
SLOWDOWN = (1.05, 2.0)  # assumption: of those
# [K] section 4.2: execution failures are the most frequent.
FAULTS = {"build_error": 0.45, "runtime_error": 0.2, "wrong_value": 0.35}
DEPTH = 0.75  # diminishing returns: share of what is left of a lever that a success takes; fitted, see AUTHORS
SD_DEPTH = 0.15  # assumption
SD_REACH = 0.2  # assumption: of an author's reach, between levers and problems

# Beliefs: believed log gain = true log gain + error. The error is the author's, persists, and shrinks with information.
# Assumption. [B] table 4: strategies that an LLM selects itself give 0.97, those of the bandit 1.57; here that order
# begins between 1.0 and 2.0 (results/cpu/kernelband_landscape.md).
SD_ERROR = 1.0
SHARED_ERROR = 0.5  # assumption: share of its variance that an author takes from problem to problem
WITH_PROFILE, WITH_BOUNDS, WITH_ATTRIBUTION = 0.85, 0.85, 0.7  # assumptions: factors on the error
PER_LESSON = 0.5  # assumption: an error of which a lesson speaks is halved
WHIM = 0.5  # assumption: temperature of the choice among levers, in log gain
KEEPS_REPAIRING = 0.7  # assumption: a free author goes on with what failed; else it tries something else

SD_LOG_ATTRIBUTION = 0.5  # assumption: of the shares of a gap that an author attributes to resources with a profile
SD_RISK = 1.0  # assumption: of the log odds of success that an author expects of its own code

# Measurement. Under ``--cv 1%`` each side's relative standard error is at most 0.5 %.
LOG_SD = 0.5e-2 * math.sqrt(2)
UNSTABLE = 9 / 250  # of 250 references timed against themselves, 9 did not settle

# Tokens of an answer; prompts count a token for four characters. Assumptions.
CODE_TOKENS, TEXT_TOKENS, CHARACTERS_A_TOKEN = 3000, 600, 4


@dataclass(frozen=True)
class Author:
    """A model that writes kernels.

    ``skill`` is added to the log odds of SUCCESS; ``start`` is the mean share of each lever that its
    first kernel has already; ``reach`` the mean share that it can use at all; ``repair`` are log odds for
    every failure that it is shown;
    ``usd_per_million`` is the input price that [M] section 5.2 names.
    """

    name: str
    skill: float
    start: float
    reach: float
    repair: float
    usd_per_million: float


# ``skill``: [B] table 2 has nearly the same share of correct tasks for models whose speedups differ (81.6 % for GPT-5,
# 85.0 % for DeepSeek-V3.2), and [M] section 1 says that the weakest model compiles at high rates and is slow: authors
# differ little in whether their code works, and much in how far it goes. ``repair``: [K] table 9, execution feedback
# lifts R1 from 72 % to 95 % in ten turns and V3 from 48 % to 53 %, so that repair is a strong model's. ``start`` and
# ``reach`` are fitted by hand to what [M] section 6.1 says of flat refinement (MI) with raw CUDA: see
# ``scripts/experiments/landscape_fit.toml``. The means are met (0.39, 0.88, 2.06 against 0.40, 0.86, 2.04), the shares
# of problems that end faster than PyTorch less so (19, 45, 81 % against 22, 29, 63 %), and too few stay unsolved.
AUTHORS = {
    author.name: author
    for author in (
        Author("mini", -0.5, 0.06, 0.52, 0.3, 0.25),
        Author("mid", 0.0, 0.12, 0.72, 0.6, 1.25),
        Author("strong", 0.5, 0.48, 0.95, 1.0, 1.75),
    )
}
