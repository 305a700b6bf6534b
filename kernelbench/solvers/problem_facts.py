"""A problem of the suite as its solver sees it: source, sizes, signature, bounds. Imports torch when asked."""

from __future__ import annotations

import ast
import threading
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

from harness.problem.module import FACTS, ProblemError, ProblemFile
from harness.solution.includes import digest_of
from kernelbench.metrics.workloads import workloads_of
from kernelbench.solvers.backend.interface import Bounds
from kernelbench.solvers.model import answers

_NOT_SHOWN = (FACTS - {"RANDOM"}) | {"get_flops", "get_bytes"}  # a solution must draw the same random numbers
_ANALYSING = threading.Lock()  # PyTorch's tracing modes are not made for several threads


class SuiteProblem:
    """Facts about one problem on ``device`` (as results record it), or on the GPU that ``hardware`` names.

    ``wanted`` are workloads as ``--workload`` names them; ``workload`` is the first of them.
    """

    def __init__(
        self,
        file: ProblemFile,
        device: dict[str, Any],
        *,
        wanted: str | None = None,
        precision: str = "fp32",
        clock_mhz: float | None = None,
        hardware: str = "",
    ):
        self.file, self.id, self.name = file, str(file.id), file.name
        self._device, self._wanted, self.precision = device, wanted, precision
        self._clock_mhz, self._hardware = clock_mhz, hardware

    @property
    def sha256(self) -> str:
        """Return the digest of the problem's module as it is now. Raises OSError where it cannot be read."""
        return digest_of(self.file.path)

    @cached_property
    def source(self) -> str:
        """The problem's module without what is not for its solver: known shortcuts, tolerances, other sizes."""
        module = self.file.path.read_text(encoding="utf-8")
        return _constant(module, "SHOWN") or starting_point(module)

    @cached_property
    def functions(self) -> list[str]:
        """Return the names that a solution defines in place of ``ModelNew``; [] for problems that want one."""
        return _constant(self.file.path.read_text(encoding="utf-8"), "FUNCTIONS") or []

    @property
    def extract(self) -> Callable[..., str] | None:
        """Return the function that finds the code in a model's answer; None for the one that finds a ``ModelNew``."""
        return partial(answers.extract_functions, self.functions) if self.functions else None

    @cached_property
    def problem(self):
        """The loaded problem, a ``harness.problem.module.Problem``."""
        from harness.problem.module import load_problem  # imports torch

        with _ANALYSING:
            return load_problem(self.file)

    @cached_property
    def workload_names(self) -> list[str]:
        """Names of the workloads that are evaluated; needs no torch."""
        return workloads_of(self.file, self._wanted, self._device["type"])

    @cached_property
    def workloads(self) -> list:
        """Return the evaluated workloads, each a ``harness.problem.module.Workload``."""
        return [self.problem.workload(name) for name in self.workload_names]

    @property
    def workload(self):
        return self.workloads[0]

    @property
    def sizes(self) -> dict[str, Any]:
        return self.workload.sizes

    @cached_property
    def signature(self):
        """The signature of a ``.cu`` or ``.cpp`` solution, a ``harness.problem.signature.Signature``."""
        from harness.problem.signature import derive_signature

        return self._analysed(derive_signature, self.workload)

    @cached_property
    def trace(self):
        """The operators of the reference, a ``harness.sol.operators.Trace``."""
        from harness.sol.operators import trace

        return self._analysed(trace, self.workload)

    @cached_property
    def limits(self):
        """Limits of the GPU that prompts describe (``harness.sol.hardware.Limits``); None for an unknown one."""
        from harness.sol.hardware import UnknownDevice, limits_of, limits_of_device

        if self._hardware:
            return limits_of(self._hardware)
        try:
            return limits_of_device(self._device)
        except UnknownDevice:
            return None

    def clock(self, conditions: dict[str, Any]):
        """The clock that t_SOL is taken at, a ``harness.sol.clock.Clock``; ``conditions`` are of a result, or {}."""
        from harness.sol.clock import choose

        return choose(self.limits, {} if self._hardware else conditions, self._clock_mhz)

    def bounds(self, conditions: dict[str, Any]) -> Bounds:
        """Return the bounds at the clock of ``conditions``, summed over the workloads."""
        try:
            analyses = self.analyses
        except ProblemError as error:
            return Bounds(unavailable=str(error))
        work = {
            "flops": sum(analysis.direct.flops for analysis in analyses),
            "bytes": sum(analysis.direct.bytes for analysis in analyses),
            "operators": [vars(row) for row in analyses[0].rows],
        }
        if self.limits is None:
            return Bounds(**work, unavailable=f"{self._device['name']} is in no table of limits")
        clock = self.clock(conditions)
        return Bounds(
            **work, **_times(analyses, self.limits, clock), sm_clock_mhz=clock.sm_mhz, clock=clock.source
        )

    def sol_report(self, conditions: dict[str, Any]) -> str:
        """Return the speed-of-light report of each workload as Markdown; '' where the device is in no table."""
        if self.limits is None:
            return ""
        from harness.sol.report import markdown

        clock = self.clock(conditions)
        return "\n".join(markdown(analysis, self.limits, clock) for analysis in self.analyses)

    @cached_property
    def analyses(self) -> list:
        from harness.sol.bounds import analyse

        return [self._analysed(analyse, workload) for workload in self.workloads]

    def _analysed(self, analysis: Callable, workload) -> Any:
        """Return what ``analysis`` makes of a workload and the type of its tensors."""
        from harness.problem.inputs import DTYPES

        with _ANALYSING:
            return analysis(workload, DTYPES[self.precision])


def _times(analyses: list, limits, clock) -> dict[str, Any]:
    """Bounds of all workloads together; the bottleneck is that of the one whose bound is the longest."""
    from harness.sol.bounds import floor, speed_of_light

    clocks = {"sm_mhz": clock.sm_mhz, "memory_mhz": clock.memory_mhz}
    tf32 = [speed_of_light(analysis, limits, **clocks) for analysis in analyses]
    fp16 = [speed_of_light(analysis, limits, fp16=True, **clocks) for analysis in analyses]
    return {
        "t_sol_ms": sum(bound.ms for bound in tf32),
        "t_sol_fp16_ms": sum(bound.ms for bound in fp16),
        "floor_ms": sum(floor(analysis, limits).ms for analysis in analyses),
        "bottleneck": max(tf32, key=lambda bound: bound.ms).bottleneck,
        "bottleneck_fp16": max(fp16, key=lambda bound: bound.ms).bottleneck,
    }


def _constant(module: str, name: str) -> Any:
    """Return the value of a constant of a module that is not run; None where there is none."""
    if f"\n{name} = " not in module:
        return None
    for node in ast.parse(module).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == name:
            return ast.literal_eval(node.value)
    return None


def starting_point(module: str) -> str:
    """A problem module with its docstring, imports, ``Model``, ``get_inputs``, ``get_init_inputs`` and helpers."""
    parts = []
    for node in ast.parse(module).body:
        names = {getattr(target, "id", None) for target in getattr(node, "targets", [])} | {getattr(node, "name", None)}
        if not names & _NOT_SHOWN:
            apart = isinstance(node, (ast.ClassDef, ast.FunctionDef))
            parts.append(("\n\n" if apart else "") + ast.get_source_segment(module, node))
    return "\n".join(parts) + "\n"
