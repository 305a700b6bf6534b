"""Autotuning: which legal variants of a program exist, which are likely fast, and which are when measured."""

from kernelbench.ucutlass.tuning.model import Size, predicted_ms, sizes_of
from kernelbench.ucutlass.tuning.search import NOT_EVALUATED, Measured, Tuning, Unevaluated, tune
from kernelbench.ucutlass.tuning.space import NotTunable, order_variants, ranked, structural_variants

__all__ = ["NOT_EVALUATED", "Measured", "NotTunable", "Size", "Tuning", "Unevaluated", "order_variants", "predicted_ms",
           "ranked", "sizes_of", "structural_variants", "tune"]  # fmt: skip
