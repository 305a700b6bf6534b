"""The file of an experiment: what it may say, and what it comes to. Reads TOML.

Every key is checked: one that is unknown, missing or of another type is an error that names the table and the key.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from harness.integrity.library_only import TRACKS
from harness.limits import MAX_SAMPLE
from harness.record.shape import LARGEST_COUNT
from harness.solution.includes import read_bytes
from kernelbench.endpoint import address_of, checked_prices
from kernelbench.evaluator.client import PRECISIONS
from kernelbench.solvers.landscape.parameters import SD_ERROR

MOST_PROBLEMS = 1_000  # of a run, four times the suite: each has a thousand draws in each figure of a report
_MOST_RUNS, _MOST_VARIANTS = 1_000_000, 1_000  # of a matrix; each is a directory
_LARGEST = 1 << 53  # of whole numbers that are taken for others
_MOST_BYTES = 64 << 10  # of a file; its decoder takes the square of some


class ExperimentError(Exception):
    """An experiment that cannot be run, and what to do about it."""


@dataclass(frozen=True)
class Model:
    """The model of ``kb solve``'s options of these names. ``price`` is USD per million tokens in and out."""

    name: str
    base_url: str | None = None
    key_variable: str = "OPENAI_API_KEY"
    price: list[float] | None = None
    fields: dict[str, Any] = field(default_factory=dict)
    stream: bool = False


@dataclass(frozen=True)
class World:
    """A landscape instead of a device and a model: see ``kernelbench.solvers.landscape``.

    ``problems`` is their number; each seed of the experiment is a landscape of its own.
    """

    problems: int = 10
    author: str = "mini"
    insight: float = 1.0
    error: float = SD_ERROR


@dataclass(frozen=True)
class Conditions:
    """Conditions of evaluations; the options of ``kb solve`` of these names."""

    device: str | None = None
    workload: str | None = None
    precision: str = "fp32"
    baseline: str = "eager"
    track: str | None = None
    timeout: float = 120.0
    build_timeout: float = 900.0
    jobs: int | None = None
    clock: float | None = None
    problem_dir: str | None = None
    at_once: int = 16


@dataclass(frozen=True)
class Ceilings:
    """Limits of the whole experiment; None is no limit. A unit of work in flight ends, and may exceed them."""

    attempts: int | None = None
    tokens: int | None = None
    usd: float | None = None
    seconds: float | None = None


LIMITS = tuple(field.name for field in dataclasses.fields(Ceilings))


@dataclass(frozen=True)
class Estimate:
    """Guess of the cost of one attempt, for a dry run before anything was measured."""

    tokens: float | None = None
    usd: float | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class Variant:
    """One column of the matrix. Fields that are None are those of the experiment."""

    name: str
    solver: str | None = None
    solver_command: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    budget: int | None = None
    schedule: str | None = None
    prompts: str | None = None
    model: Model | None = None
    author: str | None = None

    @property
    def texts(self) -> dict[str, str]:
        """The settings as ``kb solve --set`` gives them: strings."""
        text = lambda value: str(value).lower() if isinstance(value, bool) else str(value)  # noqa: E731
        return {name: text(value) for name, value in self.settings.items()}


@dataclass(frozen=True)
class Cell:
    """One run of the matrix."""

    variant: str
    seed: int
    repeat: int

    @property
    def name(self) -> str:
        return f"{self.variant} seed={self.seed} repeat={self.repeat}"


@dataclass(frozen=True)
class Experiment:
    """A matrix: ``variant`` x ``seeds`` x ``repeats``, each over all problems.

    ``compare_with`` is the variant that the others are compared with; by default the first. ``curves`` are
    lists of variants that are drawn together, such as a strategy and its ablations; by default all are. A
    repeat differs from another of the same seed only in what is no function of it: a model's sampling, noise.
    """

    name: str
    variant: list[Variant]
    problems: str = ""  # a selector; not for a landscape
    budget: int = 40  # attempts a problem, as in the muCUTLASS paper, section 5.5
    seeds: list[int] = field(default_factory=lambda: [0])
    repeats: int = 1
    schedule: str = "breadth"
    compare_with: str = ""
    curves: list[list[str]] = field(default_factory=list)
    model: Model | None = None
    landscape: World | None = None
    evaluation: Conditions = field(default_factory=Conditions)
    limits: Ceilings = field(default_factory=Ceilings)
    estimate: Estimate = field(default_factory=Estimate)

    def cells(self) -> Iterator[Cell]:
        """Return the runs in the order in which they are made: every variant of a seed, then the next seed."""
        for repeat, seed, variant in itertools.product(range(self.repeats), self.seeds, self.variant):
            yield Cell(variant.name, seed, repeat)

    def of(self, cell: Cell) -> Variant:
        """Return the variant of a cell."""
        return next(variant for variant in self.variant if variant.name == cell.variant)

    def budget_of(self, variant: Variant) -> int:
        """Return the attempts a problem."""
        return variant.budget or self.budget

    @property
    def reference(self) -> str:
        """Name of the variant that the others are compared with."""
        return self.compare_with or next((variant.name for variant in self.variant), "")


def read(path: Path) -> Experiment:
    """Return the experiment of a TOML file. Raises ExperimentError."""
    try:
        data = _toml().loads(read_bytes(path, _MOST_BYTES).decode())
    except OSError as error:
        raise ExperimentError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:  # of the decoder, and of text that is no UTF-8
        raise ExperimentError(f"{path} is not TOML: {error}") from None
    return parse(data, str(path))


def parse(data: dict[str, Any], where: str = "experiment") -> Experiment:
    """Return the experiment of a table. Raises ExperimentError."""
    experiment = _built(Experiment, data, where)
    _check(experiment, where)
    return experiment


def _toml():
    try:
        import tomllib
    except ImportError:  # Python 3.10
        try:
            import tomli as tomllib
        except ImportError:
            raise ExperimentError(
                "reading an experiment needs tomli before Python 3.11: pip install 'kernelbench[experiment]'"
            ) from None
    return tomllib


def _built(kind: type, data: Any, where: str) -> Any:
    """Return a dataclass of a table; its fields may be dataclasses, and lists of them."""
    if not isinstance(data, dict):
        raise ExperimentError(f"{where} must be a table, got {data!r:.60}")
    hints = get_type_hints(kind)
    known = {f.name: f for f in dataclasses.fields(kind)}
    if unknown := sorted(set(data) - set(known)):
        raise ExperimentError(f"{where} has no key '{unknown[0]}'; there are: {', '.join(known)}")
    required = [
        f.name for f in known.values() if f.default is f.default_factory is dataclasses.MISSING and f.name not in data
    ]
    if required:
        raise ExperimentError(f"{where} needs the key '{required[0]}'")
    return kind(**{key: _value(hints[key], value, f"{where}: {key}") for key, value in data.items()})


def _value(hint: Any, value: Any, where: str) -> Any:
    """Return a value of the type that a field has."""
    options = [hint for hint in (get_args(hint) if isinstance(hint, UnionType) else (hint,)) if hint is not type(None)]
    (wanted,) = options
    origin, inner = get_origin(wanted) or wanted, get_args(wanted)
    if dataclasses.is_dataclass(wanted):
        return _built(wanted, value, where)
    if origin is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value) if abs(value) < _LARGEST else math.inf
    if not isinstance(value, origin) or (origin is not bool and isinstance(value, bool)):
        raise ExperimentError(f"{where} must be {_NAMES[origin]}, got {value!r:.60}")
    if origin is float and not math.isfinite(value):
        raise ExperimentError(f"{where} must be a finite number, got {value}")
    if origin is dict and not _is_json(value):
        raise ExperimentError(f"{where} may hold texts, numbers, true, false, lists and tables, got {value!r:.60}")
    if origin is list:
        return [_value(inner[0], one, f"{where} {number}") for number, one in enumerate(value, 1)]
    return value


def _is_json(value: Any) -> bool:
    """Return whether JSON can say it: a date of TOML cannot be kept with a run."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True


_NAMES = {
    str: "a string", int: "a whole number", float: "a number", bool: "true or false", list: "a list", dict: "a table",
}  # fmt: skip


def _check(experiment: Experiment, where: str) -> None:
    names = [variant.name for variant in experiment.variant]
    conditions, limits = experiment.evaluation, experiment.limits
    least = [
        (conditions, "evaluation", {"timeout": 0.001, "build_timeout": 0.001, "jobs": 1, "at_once": 1, "clock": 1}),
        (limits, "limits", dict.fromkeys(("attempts", "tokens", "usd", "seconds"), 0)),
        (experiment.landscape, "landscape", {"problems": 1}),
    ]
    for table, name, bounds in least:
        for key, bound in bounds.items():
            if table is not None and (value := getattr(table, key)) is not None and value < bound:
                raise ExperimentError(f"{where} {name}: {key} must be {bound} or more, got {value}")
    checks = [*_of_matrix(experiment, names), *_of_variants(experiment)]
    for wrong, message in checks:
        if wrong:
            raise ExperimentError(f"{where} {message}")
    for model in filter(None, (experiment.model, *(variant.model for variant in experiment.variant))):
        if limits.usd is not None and model.price is None:
            raise ExperimentError(f"{where} model '{model.name}' needs a price, which the limit in usd is counted by")
        try:
            checked_prices(model.price) if model.price is not None else None
            address_of(model.base_url)
        except ValueError as error:
            raise ExperimentError(f"{where} model '{model.name}': {error}") from None


def _of_matrix(experiment: Experiment, names: list[str]) -> list[tuple[bool, str]]:
    """Return whether something is wrong with the experiment as a whole, and what, for each thing that may be."""
    return [
        (
            not re.fullmatch(r"[^/]+", experiment.name) or experiment.name in (".", "..")
            or not experiment.name.isprintable(),
            "needs a name without '/', of one line",
        ),
        (
            experiment.repeats * len(experiment.seeds) * len(names) > _MOST_RUNS,
            f"has more than {_MOST_RUNS:,} runs: variants, seeds and repeats multiply",
        ),
        (len(names) > _MOST_VARIANTS, f"has more than {_MOST_VARIANTS:,} variants"),
        (not names, "needs at least one [[variant]]"),
        (len(set(names)) < len(names), "has two variants of the same name"),
        (
            any("/" in name or not name.strip() or not name.isprintable() for name in names),
            "has a variant whose name is empty, is not of one line, or holds a '/'",
        ),
        (bool({".", ".."} & {*names}), "has a variant called . or .., which is no folder of its own"),
        (not experiment.seeds or len(set(experiment.seeds)) < len(experiment.seeds), "needs seeds, each once"),
        (not all(0 <= seed <= LARGEST_COUNT for seed in experiment.seeds), f"needs seeds from 0 to {LARGEST_COUNT}"),
        (
            experiment.landscape is not None and experiment.landscape.problems > MOST_PROBLEMS,
            f"has a landscape of more than {MOST_PROBLEMS:,} problems",
        ),
        (experiment.repeats < 1, "needs repeats of at least 1"),
        (experiment.evaluation.precision not in PRECISIONS, f"evaluates in {', '.join(PRECISIONS)} only"),
        (experiment.evaluation.track not in (None, *TRACKS), f"has a track that is none of {', '.join(TRACKS)}"),
        (not 1 <= experiment.budget <= MAX_SAMPLE, f"needs a budget from 1 to {MAX_SAMPLE:,}"),
        (experiment.reference not in names, f"compares with '{experiment.reference}', which is no variant"),
        (
            bool(unknown := {name for drawn in experiment.curves for name in drawn} - set(names)),
            f"has curves of {', '.join(sorted(unknown))}, which are no variants",
        ),
        (experiment.landscape is None and not experiment.problems, "needs the key 'problems', a selector"),
        (
            experiment.landscape is not None and bool(experiment.problems or experiment.model),
            "has a landscape, which has problems and a model of its own: leave out 'problems' and 'model'",
        ),
    ]


def _of_variants(experiment: Experiment) -> Iterator[tuple[bool, str]]:
    """Yield the same for each variant."""
    for variant in experiment.variant:
        both = (variant.solver is None) == (variant.solver_command is None)
        yield both, f"variant '{variant.name}' needs either 'solver' or 'solver_command'"
        on_landscape = experiment.landscape is not None and variant.solver is None
        yield on_landscape, f"variant '{variant.name}': a landscape runs solvers in Python only"
        is_wrong = variant.budget is not None and not 1 <= variant.budget <= MAX_SAMPLE
        yield is_wrong, f"variant '{variant.name}' needs a budget from 1 to {MAX_SAMPLE:,}"
