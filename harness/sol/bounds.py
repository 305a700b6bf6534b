"""The two bounds of a workload on a device.

``speed_of_light``: the direct algorithm at the device's limits, perfectly fused;
guidance on how much is left. ``floor``: what no honest kernel can beat, so with
every rewriting, cache and clock in the kernel's favour. Both are

    max(FLOPs / peak, bytes / bandwidth)

with the work from ``analyse``. Launches cost nothing in either.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from harness.problem.distributions import domains
from harness.problem.module import Workload
from harness.sol.demand import Demand
from harness.sol.facts import STRUCTURES, Facts, structured_share
from harness.sol.hardware import Limits
from harness.sol.least_work import Discount, least_flops
from harness.sol.operators import Operator, Trace, View, trace


@dataclass(frozen=True)
class Row:
    """One operator of the report."""

    number: int
    name: str
    inputs: list[list[int]]
    output: list[int]
    dtype: str
    flops: int
    live_share: float  # of its work, what the outputs depend on
    bytes: int  # of its operands and results, were it alone


@dataclass(frozen=True)
class Work:
    """Least work of one call by one algorithm: FLOPs and bytes."""

    contraction: float
    elementwise: float
    reads: float
    writes: float

    @property
    def flops(self) -> float:
        return self.contraction + self.elementwise

    @property
    def bytes(self) -> float:
        return self.reads + self.writes


@dataclass(frozen=True)
class Analysis:
    """The work of one workload: of the direct algorithm, and the least that is known."""

    workload: Workload
    dtype: torch.dtype
    direct: Work
    least: Work
    storage_bytes: int  # of all inputs, parameters, buffers and outputs, used or not
    notes: tuple[str, ...]  # why the direct work is not all FLOPs and all storage
    discounts: tuple[Discount, ...]  # why the least work is less than the direct one
    unknown: tuple[str, ...]  # operators that are not counted
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Bound:
    """A lower bound on the time of a call, in ms, and what it is made of."""

    compute_ms: float
    memory_ms: float
    peak_tflops: float
    peak_type: str
    gbps: float

    @property
    def ms(self) -> float:
        return max(self.compute_ms, self.memory_ms)

    @property
    def bottleneck(self) -> str:
        return "compute" if self.compute_ms > self.memory_ms else "memory"

    @property
    def ridge(self) -> float:
        """FLOPs a byte from which on compute is the limit."""
        return self.peak_tflops * 1e3 / self.gbps


def analyse(workload: Workload, dtype: torch.dtype = torch.float32) -> Analysis:
    """Trace a workload and count its work; needs no GPU and no memory.

    Raises ProblemError where the reference cannot be traced without data.
    """
    traced = trace(workload, dtype)
    facts = Facts(traced, domains(workload.problem))
    demand, least = Demand(traced, facts), Demand(traced, facts, least=True)
    views = _distinct({**traced.inputs, **traced.parameters})
    read = {name: demand.elements(view) for name, view in views.items()}
    written = _written(traced)
    shares = [demand.share(operator) for operator in traced.operators]
    live = list(zip(traced.operators, shares))
    direct = Work(
        sum(operator.flops.contraction * (share > 0) for operator, share in live),
        sum(operator.flops.elementwise * (share > 0) for operator, share in live),
        sum(count * views[name].dtype.itemsize for name, count in read.items()),
        written,
    )
    flops, discounts = least_flops(traced, facts, least)
    certain = {name: min(least.elements(view), read[name]) for name, view in views.items()}
    reads, read_discounts = _least_reads(traced, facts, views, read, certain)
    if workload.declared_bytes is not None:  # the problem knows better
        direct = Work(direct.contraction, direct.elementwise, workload.declared_bytes - written, written)
        reads = min(reads, direct.reads)
    return Analysis(
        workload,
        dtype,
        direct,
        Work(flops, 0.0, reads, written),
        sum(view.numel * view.dtype.itemsize for view in (*views.values(), *traced.outputs)),
        tuple(_notes(traced, views, read, live)),
        tuple(discounts + read_discounts),
        tuple(traced.unknown),
        tuple(_row(number, *pair) for number, pair in enumerate(live) if not pair[0].is_view),
    )


def speed_of_light(analysis: Analysis, limits: Limits, fp16: bool = False, sm_mhz: float | None = None,
                   memory_mhz: float | None = None) -> Bound:  # fmt: skip
    """t_SOL: matrix products on the tensor cores, the rest on the CUDA cores beside them, each byte moved once.

    FP32 problems are taken to run in TF32; with ``fp16`` (and for half-precision
    problems) the tensor cores take FP16, while memory holds what it holds. Peaks
    scale with the SM clock, bandwidth with the memory clock; without clocks they
    are the datasheet's.
    """
    scale = (sm_mhz or limits.rated_mhz) / limits.rated_mhz
    gbps = limits.gbps * (memory_mhz or limits.memory_mhz) / limits.memory_mhz
    tensor, tensor_type = _tensor_peak(limits, analysis.dtype, fp16)
    direct = analysis.direct
    tensor_ms = direct.contraction / (tensor * scale * 1e9)
    vector_ms = direct.elementwise / (limits.fp32 * scale * 1e9)
    on_tensor = tensor_ms >= vector_ms and direct.contraction
    return Bound(
        max(tensor_ms, vector_ms),
        direct.bytes / (gbps * 1e6),
        (tensor if on_tensor else limits.fp32) * scale,
        tensor_type if on_tensor else "FP32 CUDA cores",
        gbps,
    )


def floor(analysis: Analysis, limits: Limits, cold: bool = True) -> Bound:
    """t_floor: no honest kernel is quicker; a time below 0.9 of it is rejected (``harness.integrity.below_floor``).

    ``cold`` is whether the L2 was flushed before the call. What is written may
    still be in the L2 when the call ends; of a hot call what is read may be too.
    """
    least = analysis.least
    if cold:
        traffic = least.reads + max(0.0, least.writes - limits.l2_bytes)
    else:
        traffic = max(0.0, least.bytes - limits.l2_bytes)
    peak = limits.floor_tflops
    return Bound(
        least.flops / (peak * 1e9), traffic / (limits.max_gbps * 1e6), peak, "FP16 TC, highest clock", limits.max_gbps
    )


def _tensor_peak(limits: Limits, dtype: torch.dtype, fp16: bool) -> tuple[float, str]:
    half = fp16 or dtype in (torch.float16, torch.bfloat16)
    if half:
        return limits.fp16, "FP16 TC (dense)"
    if limits.tf32 is None:
        return limits.fp32, "FP32 CUDA cores"
    return limits.tf32, "TF32 TC (dense)"


def _distinct(views: dict[str, View]) -> dict[str, View]:
    """Return the first of several names for one storage, as of tied weights."""
    first = {view.storage: name for name, view in reversed(views.items())}
    return {name: view for name, view in views.items() if first[view.storage] == name}


def _written(traced: Trace) -> int:
    """Bytes of the outputs; what is an input too, or shows an element twice, is written once or not at all."""
    given = {view.storage for view in traced.inputs.values()} | {view.storage for view in traced.parameters.values()}
    largest: dict[int, int] = {}
    for view in traced.outputs:
        if view.storage not in given:
            largest[view.storage] = max(view.bytes, largest.get(view.storage, 0))
    return sum(largest.values())


def _least_reads(
    traced: Trace, facts: Facts, views: dict[str, View], read: dict[str, float], certain: dict[str, float]
) -> tuple[float, list[Discount]]:
    """Bytes that must be read: of triangular and symmetric inputs one half, and what no index or mask decides on."""
    total, discounts = 0.0, []
    for name, view in views.items():
        structure = facts.of(view).structure if name in traced.inputs else None
        share = structured_share(structure, view.shape) if structure in STRUCTURES else 1.0
        if share < 1:
            rest = "the other half is equal" if structure not in STRUCTURES[:3] else "the rest is zero"
            discounts.append(Discount(f"reading {name}", share, f"{structure}: {rest}"))
        if certain[name] < read[name]:
            why = "indices may repeat, and a mask may choose nothing of it"
            discounts.append(Discount(f"reading {name}", certain[name] / read[name], why))
        total += certain[name] * share * view.dtype.itemsize
    return total, discounts


def _notes(traced: Trace, views: dict[str, View], read: dict[str, float], live) -> list[str]:
    """Explain why the direct work is less than all FLOPs, and its traffic less than all storage."""
    returned = {view.storage for view in traced.outputs}
    unread = [name for name in views if not read[name]]
    notes = []
    for names, why in (
        ([n for n in unread if views[n].storage in returned], "handed out as they are"),
        ([n for n in unread if views[n].storage not in returned], "nothing that is returned depends on them"),
    ):
        if names:
            more = f" and {len(names) - 4} more" if len(names) > 4 else ""
            notes.append(f"not read: {', '.join(names[:4])}{more} ({why})")
    for name, view in views.items():
        if 0 < read[name] < view.numel:
            notes.append(f"{name}: {read[name]:,.0f} of {view.numel:,} elements are read")
    discarded = sum(operator.flops.total for operator, share in live if share == 0)
    if discarded:
        notes.append(f"{discarded:,} FLOPs of the reference are discarded, or the same for every input")
    for view in traced.outputs:
        if view.distinct < view.numel:
            notes.append(f"an output shows {view.numel:,} elements, of which {view.distinct:,} are distinct")
    return notes


def _row(number: int, operator: Operator, share: float) -> Row:
    tensors = {(view.storage, view.offset, view.shape): view for view in (*operator.inputs, *operator.outputs)}
    return Row(
        number,
        operator.name,
        [list(view.shape) for view in operator.inputs],
        list(operator.output.shape) if operator.outputs else [],
        str(operator.output.dtype).removeprefix("torch.") if operator.outputs else "",
        operator.flops.total,
        round(share, 6),
        sum(view.bytes for view in tensors.values()),
    )
