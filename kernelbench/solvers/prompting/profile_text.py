"""A profile as text for a model."""

from __future__ import annotations

from tabulate import tabulate

from kernelbench.solvers.backend.interface import Profile

_MOST_KERNELS, _NAME_CHARACTERS = 12, 60  # that a model is shown
_FIGURES = {
    "sm_percent": "SM throughput, % of peak",
    "dram_percent": "DRAM throughput, % of peak",
    "l2_percent": "L2 throughput, % of peak",
    "occupancy_percent": "occupancy, %",
    "registers": "registers a thread",
    "shared_bytes": "shared memory a block, bytes",
    "block_size": "threads a block",
    "compute_percent": "least FLOPs over the time, % of peak",
    "bandwidth_percent": "least bytes over the time, % of peak bandwidth",
}
_COLUMNS = ("launches", "ms", "sm_percent", "dram_percent", "l2_percent", "occupancy_percent", "registers")
_COLUMNS += ("shared_bytes", "block_size")


def markdown(profile: Profile) -> str:
    """Return what is known, and a row for each kernel."""
    lines = [f"Profile ({profile.tool}{'; ' + profile.note if profile.note else ''}):"]
    for name, title in _FIGURES.items():
        if (value := getattr(profile, name)) is not None:
            lines.append(f"- {title}: {value:.4g}")
    lines += [f"- {name.replace('_', ' ')}: {value:.4g}" for name, value in profile.facts.items() if value is not None]
    rows = [
        [kernel["name"][:_NAME_CHARACTERS], *(_cell(kernel.get(column)) for column in _COLUMNS)]
        for kernel in profile.kernels[:_MOST_KERNELS]
    ]
    if rows:
        lines += ["", tabulate(rows, ("kernel", *_COLUMNS), tablefmt="github", disable_numparse=True)]
    return "\n".join(lines)


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
