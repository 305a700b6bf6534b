"""The strategy set, and the resource that each strategy relieves: section 3.6, appendix D; targets are our reading."""

from __future__ import annotations

SM, DRAM, L2 = "sm", "dram", "l2"

# The paper names Target(s) and does not list it. Strategies in the order of its table 6.
TARGETS = {
    "tiling": SM,
    "vectorization": DRAM,
    "fusion": DRAM,
    "pipeline": SM,
    "reordering": L2,
    "access_layout": DRAM,
}
STRATEGIES = tuple(TARGETS)
TITLES = {name: name for name in STRATEGIES} | {"access_layout": "access & layout"}


def prompt_name(strategy: str) -> str:
    """Return the prompt file of a strategy, without ``.md``."""
    return f"kernelband/{strategy}"
