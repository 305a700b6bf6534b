"""The roofline of a device with problems on it, as a picture. Needs matplotlib (the ``report`` extra)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kernelbench.views import plotting
from kernelbench.views.plotting import PictureError


def draw(reports: list[dict[str, Any]], path: Path) -> None:
    """Write the picture; its format is that of the suffix of ``path``.

    Each problem stands at its arithmetic intensity on the roof of its FP32
    assumptions. Problems that move nothing or compute nothing have no place.
    """
    pyplot = plotting.pyplot("a roofline")
    shown = [r for r in reports if r["arithmetic_intensity"]]
    if not shown:
        raise PictureError("none of the selected problems has an arithmetic intensity")
    figure, axes = pyplot.subplots(figsize=(9, 6), layout="constrained")
    for name, peak, gbps in _roofs(reports):
        ridge = peak * 1e3 / gbps
        low, high = _span(shown, ridge)
        axes.loglog([low, ridge, high], [low * gbps / 1e3, peak, peak], label=f"{name}: {peak:.1f} TFLOP/s")
    for report in shown:
        reached = report["total_flops"] / report["theoretical_runtime_ms"] / 1e9
        axes.plot(report["arithmetic_intensity"], reached, "o", color="black", markersize=4)
        if len(shown) <= 30:
            axes.annotate(report["problem_id"], (report["arithmetic_intensity"], reached), fontsize=7,
                          xytext=(4, -8), textcoords="offset points")  # fmt: skip
    axes.set_xlabel("arithmetic intensity, FLOPs/byte")
    axes.set_ylabel("TFLOP/s")
    axes.set_title(f"Roofline of {reports[0]['device_name']} at {reports[0]['sm_clock_mhz']:g} MHz")
    axes.grid(True, which="major", alpha=0.3)
    axes.legend()
    plotting.save(figure, path)


def _roofs(reports: list[dict[str, Any]]) -> list[tuple[str, float, float]]:
    """(name, TFLOP/s, GB/s) of each peak that a problem runs against."""
    roofs = {}
    for report in reports:
        roofs[report["peak_type"]] = report["peak_tflops_effective"]
        roofs[report["fp16_peak_type"]] = report["fp16_peak_tflops_effective"]
    return [(name, peak, reports[0]["bandwidth_gbps"]) for name, peak in sorted(roofs.items(), key=lambda r: r[1])]


def _span(reports: list[dict[str, Any]], ridge: float) -> tuple[float, float]:
    intensities = [report["arithmetic_intensity"] for report in reports]
    return min(*intensities, ridge) / 4, max(*intensities, ridge) * 4
