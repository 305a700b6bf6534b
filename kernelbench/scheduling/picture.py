"""The Pareto picture: normalised cost against geometric mean, a frontier for each variant."""

from __future__ import annotations

from typing import Any

from kernelbench import escaping
from kernelbench.views.plotting import pyplot

_MARKERS = "osD^vP*Xh"


def pareto(data: dict[str, Any]):
    """Return the figure; markers tell eps apart, their size the window. Raises PictureError without matplotlib."""
    plt = pyplot("a picture of policies")
    figure, axes = plt.subplots(figsize=(8, 5.5), layout="constrained")
    epsilons = sorted({_eps(row) for of in data["variants"] for row in of["policies"]})
    for index, variant in enumerate(data["variants"]):
        colour = f"C{index % 10}"
        rows = [row for row in variant["policies"] if row["geometric_mean"] is not None]
        for row in rows:
            marker = _MARKERS[epsilons.index(_eps(row)) % len(_MARKERS)]
            size = 12 + 3 * row["window"]
            axes.scatter(row["cost"], row["geometric_mean"], size, colour, marker=marker, alpha=0.5, linewidths=0)
        fixed = variant["fixed"]
        if fixed["geometric_mean"] is not None:
            axes.scatter(fixed["cost"], fixed["geometric_mean"], 160, colour, marker="*", edgecolors="black", zorder=3)
        if variant["hull"]:
            axes.plot(*zip(*variant["hull"]), color=colour, label=escaping.picture(variant["name"]))
    axes.set_xlabel(f"cost ({data['cost_of']}), over the dearest variant's fixed run")
    axes.set_ylabel("geometric mean of settled speedups")
    axes.set_title("Scheduling policies (star: without any; marker: eps; size: window)")
    axes.set_xlim(left=0)
    if axes.get_legend_handles_labels()[0]:
        axes.legend()
    return figure


def _eps(row: dict[str, Any]) -> float:
    return float("inf") if row["eps"] is None else row["eps"]
