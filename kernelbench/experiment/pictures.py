"""The pictures of an experiment's report, as SVG."""

from __future__ import annotations

import io
from typing import Any

from kernelbench import escaping
from kernelbench.experiment.report import Report, drawn_together
from kernelbench.scheduling import picture
from kernelbench.views.plotting import pyplot

_WHAT = "a picture of an experiment"


def drawings(report: Report, experiment) -> dict[str, bytes]:
    """Return SVG by name. Raises PictureError without matplotlib."""
    variants = {of["name"]: of for of in report.data["variants"]}
    drawn = {}
    for number, names in enumerate(drawn_together(experiment), 1):
        drawn[f"fast_p_{number}"] = _svg(_fast_p([variants[name] for name in names if name in variants]))
    drawn["attempt_fast_p"] = _svg(_attempt_fast_p(list(variants.values())))
    if report.data["scheduling"]:
        drawn["pareto"] = _svg(picture.pareto(report.data["scheduling"]))
    return drawn


def _fast_p(variants: list[dict[str, Any]]):
    """Return the curves from 0.1 on, on a logarithmic axis as in the muCUTLASS paper, figure 4."""
    figure, axes = pyplot(_WHAT).subplots(figsize=(7, 4.5), layout="constrained")
    for of in variants:
        points = of["fast_p"]
        # a point's share holds beyond its r, up to and with the next one
        axes.step([max(r, 0.1) for r, _ in points], [100 * s for _, s in points], where="post", label=_label(of))
    axes.set_xscale("log")
    axes.axvline(1.0, color="grey", linewidth=0.8)
    axes.set_xlabel("settled speedup r")
    return _finished(figure, axes, "% of problems at r or beyond")


def _attempt_fast_p(variants: list[dict[str, Any]]):
    figure, axes = pyplot(_WHAT).subplots(figsize=(7, 4.5), layout="constrained")
    for of in variants:
        points = of["attempt_fast_p"]
        axes.step([a for a, _ in points], [100 * s for _, s in points], where="post", label=_label(of))
    axes.set_xlabel("attempt")
    return _finished(figure, axes, "% of problems at 2 or beyond")


def _label(of: dict[str, Any]) -> str:
    mean = of["geometric_mean"]["value"]
    name = escaping.picture(of["name"])
    return name if mean is None else f"{name} ({mean:.2f}x)"


def _finished(figure, axes, label: str):
    axes.set_ylabel(label)
    axes.set_ylim(0, 100)
    axes.grid(alpha=0.3)
    if axes.get_legend_handles_labels()[0]:
        axes.legend()
    return figure


def _svg(figure) -> bytes:
    plt = pyplot(_WHAT)
    with plt.rc_context({"svg.hashsalt": "kernelbench"}):  # the same figures give the same file
        text = io.BytesIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
    plt.close(figure)
    return text.getvalue()
