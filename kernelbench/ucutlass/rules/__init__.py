"""The rules of the language and of CUTLASS. A rule is one decorated function in one of the modules named here."""

from kernelbench.ucutlass.rules import (  # noqa: F401
    architecture,
    before_sm90,
    binding,
    convolution,
    dtypes,
    epilogue,
    pipeline,
    required,
    schedule,
    tile,
)
from kernelbench.ucutlass.rules.registry import RULES, Rule, Subject

__all__ = ["RULES", "Rule", "Subject"]
