"""Problems and kernels of the landscape: what a kernel's time is, and what a profiler would say of it.

A kernel is a vector ``left``: for each lever the share of its potential that is not used yet. Resource r takes
T_r = ideal_r exp(sum of potential_s left_s over the levers s on r), and the kernel (sum of T_r^p)^(1/p).
A lever on a resource that does not bind changes nothing, until others have made it bind.
"""

from __future__ import annotations

import functools
import json
import math
import random
import re
from dataclasses import asdict, dataclass

from kernelbench.solvers.landscape import parameters as p

Left = tuple[float, ...]

_SPEC = re.compile(r"^# landscape (\{.*\})$", re.MULTILINE)
_MAX_REGISTERS, _MAX_SHARED_KB, _MAX_WARPS = 65536, 228, 64  # of an SM of compute capability 9.0


@dataclass(frozen=True)
class Spec:
    """State of a kernel, as its source says.

    ``before`` is ``left`` of the kernel that it was made from, ``fault`` how it fails, ``fails`` how often
    in a row this ``move`` has failed, ``drag`` a factor on its time.
    """

    left: Left
    before: Left
    move: str | None = None
    fault: str | None = None
    fails: int = 0
    drag: float = 1.0

    def source(self, problem: str, kind: str = "py") -> str:
        """Return a source file of this kernel."""
        fields = asdict(self) | {name: [round(x, 4) for x in getattr(self, name)] for name in ("left", "before")}
        line = f"# landscape {json.dumps(fields | {'drag': round(self.drag, 4)})}\n"
        return f"{line}# problem {problem}\nimport torch\n\n\nclass ModelNew(torch.nn.Module):\n    pass\n"


def spec_in(text: str) -> Spec | None:
    """Return the last kernel in a text; None where there is none."""
    lines = _SPEC.findall(text)
    if not lines:
        return None
    fields = json.loads(lines[-1])
    return Spec(**fields | {name: tuple(fields[name]) for name in ("left", "before")})


@dataclass(frozen=True)
class Problem:
    """One problem. Vectors are over LEVERS, ``ideal_ms`` over RESOURCES."""

    id: str
    baseline_ms: float
    sol_ms: float  # TF32
    sol_fp16_ms: float
    bottleneck: str  # at the speed of light: compute or memory
    ideal_ms: tuple[float, ...]  # at the limit of what can be written
    target: tuple[int, ...]
    potential: tuple[float, ...]
    hardness: tuple[float, ...]  # log odds

    def resource_ms(self, left: Left) -> list[float]:
        """Return the time that each resource takes."""
        excess = [0.0] * len(p.RESOURCES)
        for resource, potential, share in zip(self.target, self.potential, left):
            excess[resource] += potential * share
        return [ideal * math.exp(e) for ideal, e in zip(self.ideal_ms, excess)]

    def time_ms(self, left: Left) -> float:
        """Return the time of a kernel."""
        return math.fsum(t**p.OVERLAP for t in self.resource_ms(left)) ** (1 / p.OVERLAP)

    def gain(self, left: Left, then: Left) -> float:
        """Return the logarithm of how much faster the second kernel is."""
        return math.log(self.time_ms(left) / self.time_ms(then))

    def attribution(self, left: Left) -> list[float]:
        """Return the share of each resource in the time: its part of the sum of T_r^p."""
        parts = [t**p.OVERLAP for t in self.resource_ms(left)]
        return [part / math.fsum(parts) for part in parts]


@functools.lru_cache(maxsize=4096)
def problem(seed: int, number: str) -> Problem:
    """Return the problem of that number, ``"1/7"``, in the landscape of a seed."""
    rng = random.Random(f"landscape {seed} {number}")
    baseline_ms = p.BASELINE_MS * math.exp(rng.gauss(0, p.SD_LOG_BASELINE))
    headroom = max(p.LEAST_HEADROOM, math.exp(rng.gauss(p.LOG_HEADROOM, p.SD_LOG_HEADROOM)))
    sol_fp16_ms = baseline_ms / headroom
    limit_ms = sol_fp16_ms * (1 + math.exp(rng.gauss(p.LOG_EXCESS_OF_LIMIT, p.SD_LOG_EXCESS_OF_LIMIT)))
    compute_bound = rng.random() < p.COMPUTE_BOUND
    naive_ms = max(baseline_ms * math.exp(rng.gauss(p.LOG_NAIVE_SLOWDOWN, p.SD_LOG_NAIVE_SLOWDOWN)), 2 * limit_ms)
    binding = 0 if compute_bound else rng.choice((1, 2))
    ideal = [limit_ms * (1.0 if r == binding else rng.uniform(*p.SLACK)) for r in range(len(p.RESOURCES))]
    target = tuple(_target(rng, name) for name in p.TARGETS)
    shares = _dirichlet(rng, [p.SHARE_CONCENTRATION * weight for weight in p.POTENTIAL])
    hard = rng.gauss(0, p.SD_PROBLEM)
    return Problem(
        number, baseline_ms,
        min(sol_fp16_ms * (p.FP16_OVER_TF32 if compute_bound else 1.0), baseline_ms),
        sol_fp16_ms, "compute" if compute_bound else "memory", tuple(ideal), target,
        _scaled(shares, target, ideal, naive_ms), tuple(hard + rng.gauss(0, p.SD_LEVER) for _ in p.LEVERS),
    )  # fmt: skip


def _target(rng: random.Random, usual: str) -> int:
    if rng.random() < p.ON_TARGET:
        return p.RESOURCES.index(usual)
    return rng.choice([r for r, name in enumerate(p.RESOURCES) if name != usual])


def _dirichlet(rng: random.Random, weights: list[float]) -> list[float]:
    draws = [rng.gammavariate(weight, 1.0) for weight in weights]
    return [draw / math.fsum(draws) for draw in draws]


def _scaled(shares: list[float], target: tuple[int, ...], ideal: list[float], naive_ms: float) -> tuple[float, ...]:
    """Return potentials in proportion to ``shares``, with which the slowest resource takes ``naive_ms``."""
    on = [math.fsum(s for s, t in zip(shares, target) if t == r) for r in range(len(ideal))]
    factor = min(math.log(naive_ms / ideal[r]) / on[r] for r in range(len(ideal)) if on[r] > 0)
    return tuple(factor * share for share in shares)


def profile(of: Problem, spec: Spec) -> dict[str, float]:
    """Return what a profiler reports: throughput in % of the peak, occupancy in %, registers, shared memory in bytes.

    Throughput is that of the work that cannot be avoided, so a saturated resource has nothing left to gain:
    assumption 1 of KernelBand holds here and cannot be tested here. Registers and shared memory grow with
    the levers that use them.
    """
    time_ms = of.time_ms(spec.left) * spec.drag
    used = [1 - share for share in spec.left]
    tiling, vectorization, fusion, pipeline, reordering, _ = used
    block = (128, 256, 512)[int(2.99 * (tiling + reordering) / 2)]
    registers = int(min(255, _MAX_REGISTERS // block, 24 + 96 * tiling + 40 * vectorization + 48 * fusion))
    shared = int(1024 * (48 * tiling + 48 * pipeline))
    warps = block // 32
    blocks = min(
        _MAX_WARPS // warps, _MAX_REGISTERS // (registers * block), int(_MAX_SHARED_KB * 1024 // max(shared, 1024))
    )
    throughput = {name: 100 * ideal / time_ms for name, ideal in zip(p.RESOURCES, of.ideal_ms)}
    return {
        "sm": throughput["SM"], "dram": throughput["DRAM"], "l2": throughput["L2"],
        "occupancy": 100 * blocks * warps / _MAX_WARPS, "registers": registers, "shared_bytes": shared, "block": block,
    }  # fmt: skip
