"""An attempt as a few lines of text."""

from __future__ import annotations

from typing import Any


def page(attempt: dict[str, Any]) -> str:
    """Return what a person at a terminal reads of an attempt."""
    subject = " ".join(filter(None, [attempt["problem"], attempt["problem_name"]])) or "no problem"
    lines = [f"{attempt['file']}: {subject}, {attempt['status'].replace('_', ' ')}"]
    if attempt["error"]:
        # marked: most of it is the candidate's, which could write lines like those below
        lines += [f"  | {line}" for line in attempt["error"]["message"].strip().splitlines()]
    if attempt["correct"]:
        lines += [f"  {line}" for line in _times(attempt)]
    lines.append(f"  next: {attempt['hint']}")
    seconds = attempt["seconds"]
    if seconds["time"] is not None:
        lines.append(
            f"  {seconds['total']:.2f} s: build {seconds['build'] or 0:.2f}, check and timing {seconds['time']:.2f}, "
            f"the rest {seconds['overhead']:.2f}"
        )
    return "\n".join(lines)


def _times(attempt: dict[str, Any]) -> list[str]:
    where = f"on {attempt['device']}, {attempt['workload']}"
    if attempt["time_ms"] is None:
        return [f"time     not taken {where}"]
    lines = [f"time     {attempt['time_ms']:.4g} ms {where}"]
    if attempt["verdict"] is None:
        return lines
    found = attempt["interval"]
    sure = f" [{found[0]:.3f}, {found[1]:.3f}]" if found else ""
    measured = f"{attempt['measured_speedup']:.3f}x over {attempt['baseline']}{sure}"
    lines.append(f"speedup  {attempt['verdict']}: measured {measured}")
    if attempt["percent_of_sol"] is not None:
        lines.append(f"bound    {attempt['percent_of_sol']:.3g} % of the speed of light")
    return lines
