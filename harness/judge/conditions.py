"""Conditions of an evaluation, apart from problem and solution."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from harness.baselines import EAGER
from harness.timing.convergence import CV_TARGET


@dataclass(frozen=True)
class Conditions:
    device: torch.device
    precision: str = "fp32"
    timeout_s: float = 120.0
    memory_bytes: int = 8 << 30
    build_timeout_s: float = 900.0  # of what a candidate builds only when it is loaded or called
    baselines: tuple[str, ...] = (EAGER,)  # timed in turn; the first is what the speedup is over
    cv_target: float = CV_TARGET  # of the rule that ends sampling, harness.timing.convergence
    clock_mhz: float | None = None  # that t_SOL is taken at; None is the one observed
    track: str | None = None  # 'kernels' or 'open'; None is 'kernels' on a GPU, where kernels are seen, else 'open'
    structure: str = ""  # of inputs, one of ``distributions.STRUCTURES``; '' is the problem's own draws alone

    @property
    def reference_s(self) -> float:
        """Seconds that a step of the reference may take: it is called in FP64 too, and on several draws at once."""
        return 5 * self.timeout_s

    @property
    def worker_device(self) -> torch.device:
        """Return what a worker calls the device: of several GPUs it sees only this one."""
        return torch.device("cuda", 0) if self.device.type == "cuda" else self.device

    @property
    def needs_own_kernels(self) -> bool:
        return (self.track or ("kernels" if self.device.type == "cuda" else "open")) == "kernels"
