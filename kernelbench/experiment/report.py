"""The report of an experiment: sections of text, tables and pictures, for ``rendering`` to write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernelbench import __version__
from kernelbench.experiment.figures import ATTEMPT_THRESHOLD, THRESHOLDS, Pool, figures, pools
from kernelbench.experiment.outcomes import BANDS, FILTERINGS, Finished
from kernelbench.experiment.plan import Experiment
from kernelbench.metrics import scheduling
from kernelbench.metrics.intervals import LEVEL
from kernelbench.scheduling import study as policies
from kernelbench.scheduling import text as policy_text

_AT = (1, 5, 10, 20, 40)  # attempts in the table of Attempt-Fast-p


@dataclass(frozen=True)
class Table:
    headers: Sequence[str]
    rows: list[Sequence[str]]


@dataclass(frozen=True)
class Section:
    """``pictures`` are names of drawings of ``pictures.drawings``."""

    title: str
    text: str = ""
    tables: list[Table] = field(default_factory=list)
    pictures: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Report:
    """``data`` has all figures, those of policies under ``scheduling``; it is what ``report.json`` holds."""

    title: str
    sections: list[Section]
    data: dict[str, Any]


def report(experiment: Experiment, runs: Sequence[Finished], command: str, date: str) -> Report:
    """Return the report of the runs that are finished; ``command`` and ``date`` are how and when they were made."""
    found = pools(experiment, runs)
    data = figures(experiment, runs) | {"scheduling": _scheduling(found)}
    sections = [
        _conditions(experiment, runs, command, date),
        _variants(data),
        _compared(data),
        _fast_p(data, experiment),
        _attempts(data),
        _integrity(data),
        *_policies(data["scheduling"]),
    ]
    return Report(experiment.name, sections, data)


def drawn_together(experiment: Experiment) -> list[list[str]]:
    """Return the names of variants of each Fast-p picture."""
    return experiment.curves or [[variant.name for variant in experiment.variant]]


def _conditions(experiment: Experiment, runs: Sequence[Finished], command: str, date: str) -> Section:
    wanted = sum(1 for _ in experiment.cells())
    if experiment.landscape:
        world = experiment.landscape
        where = (
            f"A simulated landscape: {world.problems} problems a seed, author {world.author}, insight "
            f"{world.insight:g}, error {world.error:g}. No device and no model took part; "
            "kernelbench.solvers.landscape says what that can and cannot show."
        )
        cluster = "seeds"
    else:
        given = experiment.evaluation
        where = f"Problems {experiment.problems}, device {given.device or 'default'}, baseline {given.baseline}."
        cluster = "problems"
    text = (
        f"{where} {experiment.budget} attempts a problem, {len(experiment.seeds)} seed(s), {experiment.repeats} "
        f"repeat(s); {len(runs)} of {wanted} runs are finished. Made with {command}, kernelbench {__version__}, "
        f"{date}. [low, high]: {LEVEL:.0%} bootstrap interval over {cluster}. A tie counts as 1; unsolved and unstable "
        "problems are left out of means, and count as 1 in the fallback mean. Attempts count by their first "
        "measurement."
    )
    return Section("Conditions", text)


def _variants(data: dict[str, Any]) -> Section:
    headers = ("variant", "runs", "problems", "solved", "geo. mean", "median", "fallback mean", "raw geo. mean",
               "raw median", "CV of runs", "attempts", "tokens", "USD")  # fmt: skip
    rows = [
        (
            of["name"], str(of["runs"]), str(of["problems"]), shown(of["solved"], ".1%"),
            *(shown(of[name]) for name in ("geometric_mean", "median", "fallback", "raw_geometric_mean", "raw_median")),
            "-" if of["cv"]["value"] is None else f"{of['cv']['value']:.1%}",
            f"{of['attempts']:,.0f}", _count(of["tokens"], ",.0f"), _count(of["usd"], ",.2f"),
        )
        for of in data["variants"]
    ]  # fmt: skip
    text = (
        "Speedups are settled, raw ones are point estimates. The coefficient of variation is that of the geometric "
        "means of repeated runs; on a landscape of the repeats of a seed, averaged over seeds."
    )
    return Section("Variants", text, [Table(headers, rows)])


def _count(number: float | None, form: str) -> str:
    return "-" if number is None else format(number, form)


def _compared(data: dict[str, Any]) -> Section:
    headers = ("variant", "over", "runs", "ratio of geo. means", "of fallback means", "signed area", "left out")
    rows = [
        (of["name"], of["over"], str(of["runs"]), shown(of["ratio"]), shown(of["fallback_ratio"]),
         shown(of["signed_area"], "+.3f"), str(of["left_out"]))
        for of in data["compared"]
    ]  # fmt: skip
    text = (
        f"Each variant over {data['reference']}, paired by seed, repeat and problem. The signed area lies between the "
        "Fast-p curves and is the difference of arithmetic means, an unsolved problem counting 0; problems solved "
        "without a settled speedup are left out of it."
    )
    return Section("Compared", text, [Table(headers, rows)])


def _fast_p(data: dict[str, Any], experiment: Experiment) -> Section:
    headers = ("variant", *(f"at least {r:g}" for r in THRESHOLDS))
    rows = [
        (of["name"], *(shown(of["at_least"][f"{r:g}"], ".1%") for r in THRESHOLDS)) for of in data["variants"]
    ]
    names = [f"fast_p_{number}" for number, _ in enumerate(drawn_together(experiment), 1)]
    text = "Share of problems whose best settled speedup is at least r."
    return Section("Fast-p", text, [Table(headers, rows)], names)


def _attempts(data: dict[str, Any]) -> Section:
    rows = []
    for of in data["variants"]:
        curve = {point[0]: point[1] for point in of["attempt_fast_p"]}
        rows.append((of["name"], *(f"{curve[at]:.1%}" if at in curve else "-" for at in _AT)))
    title = f"Attempt-Fast-p({ATTEMPT_THRESHOLD:g})"
    text = f"Share of problems with a settled speedup of at least {ATTEMPT_THRESHOLD:g} after so many attempts."
    return Section(title, text, [Table(("variant", *(f"after {at}" for at in _AT)), rows)], ["attempt_fast_p"])


def _integrity(data: dict[str, Any]) -> Section:
    counts = [(of["name"], *(str(of["bands"][band]) for band in BANDS)) for of in data["variants"]]
    means = [
        (of["name"], kind, *(shown(of["filterings"][name][kind]) for name in FILTERINGS))
        for of in data["variants"] for kind in ("settled", "raw")
    ]  # fmt: skip
    text = (
        "Attempts by outcome band, and the geometric mean under each filtering: with all attempts, without those of "
        "one band, and without all three. Gaming is what a review found (kb review)."
    )
    bands = Table(("variant", *(band.replace("_", " ") for band in BANDS)), counts)
    return Section("Integrity", text, [bands, Table(("variant", "speedups", *FILTERINGS), means)])


def _scheduling(found: list[Pool]) -> dict[str, Any] | None:
    """Return the study of the grid of policies; None without runs."""
    if not found:
        return None
    variants = [
        policies.Variant(
            pool.name, [trace for run in pool.runs for trace in run.accepted()], clusters=np.asarray(pool.clusters)
        )
        for pool in found
    ]
    return policies.study(variants, policies.Grid(scheduling.grid()))


def _policies(data: dict[str, Any] | None) -> list[Section]:
    if data is None:
        return []
    sections = [
        Section("Scheduling: best policy of each variant", policy_text.notes(data),
                [Table(("variant", *policy_text.HEADERS), policy_text.best_rows(data))], ["pareto"])
    ]  # fmt: skip
    for variant in data["variants"]:
        for title, eps in (("eps at w = 0", True), ("w at eps = 100 %", False)):
            rows = [policy_text.cells(row) for row in policies.sweep(variant, eps)]
            sections.append(Section(f"{variant['name']}: {title}", "", [Table(policy_text.HEADERS, rows)]))
    return sections


def shown(figure: dict[str, float | None], form: str = ".3f") -> str:
    """Return a figure with its interval as text."""
    return policy_text.shown(figure, form)
