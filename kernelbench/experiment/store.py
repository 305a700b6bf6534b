"""The directory of an experiment: what it is of, and its finished runs.

- ``experiment.json``: the experiment as it was read
- ``cells.jsonl``: a line for each finished run
- ``runs/VARIANT/s0_r0/``: run directories, of those that were made on a device
- ``figures/``: the pictures of the report, which lies beside it
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

from harness.json_text import parse_json
from harness.limits import MAX_JSON_BYTES
from harness.record.shape import LIST, OBJECT, TEXT, shape
from kernelbench.experiment.outcomes import Finished
from kernelbench.experiment.plan import Cell, Experiment, ExperimentError, Variant
from kernelbench.run import only_writer
from kernelbench.run_files.folder import DEFINITION, first_in, foreign, leads_by_a_link_in, read_own
from kernelbench.run_files.log import append_line, whole_lines, write_whole
from kernelbench.solvers import script
from kernelbench.solvers.program import Program
from kernelbench.solvers.prompting.prompts import Prompts

CELLS, RUNS, FIGURES = "cells.jsonl", "runs", "figures"
_DEPTH = 3  # of a run: runs/VARIANT/CELL
# What may change when an experiment is continued. Variants may be added.
_FREE = ("limits", "estimate", "compare_with", "curves", "seeds", "repeats", "variant", "left_out")
_FILES = {"solvers": "the solver", "prompts": "the prompts"}  # of which a definition has digests, by variant

_VARIANTS = {"variant": LIST, "variant[]": OBJECT, "variant[].name!": TEXT, **{f"{kind}.*": TEXT for kind in _FILES}}
_DEFINITION = shape({**_VARIANTS, **{f"left_out.{name}": kind for name, kind in _VARIANTS.items()}})


class Store:
    """The finished runs of an experiment; ``finished`` is by cell. Without ``writes`` they are only looked at.

    Raises ExperimentError, and RunError where another process writes into it.
    """

    def __init__(self, folder: Path, experiment: Experiment, resume: bool, writes: bool = True):
        self.folder, self.experiment = folder, experiment
        definition = json.loads(json.dumps(dataclasses.asdict(experiment)))
        definition["solvers"] = {variant.name: _digest(variant) for variant in experiment.variant}
        with_prompts = [variant for variant in experiment.variant if variant.prompts]
        definition["prompts"] = {variant.name: Prompts.digest(Path(variant.prompts)) for variant in with_prompts}
        path = folder / DEFINITION
        others = f"{folder / CELLS} is a link" if (folder / CELLS).is_symlink() else foreign(folder, _DEPTH)
        if others:
            raise ExperimentError(f"{others}: choose another --out")
        if not resume and not path.exists() and (others := first_in(folder)):
            raise ExperimentError(
                f"{folder} has {others}, and a new experiment begins in an empty folder: choose another --out"
            )
        self._writer = _begun(folder) if writes else None
        try:
            self._begin(path, definition, resume, writes)
        except BaseException:
            self.close()
            raise

    def _begin(self, path: Path, definition: dict[str, Any], resume: bool, writes: bool) -> None:
        folder = self.folder
        if path.exists():
            if not resume:
                raise ExperimentError(f"{folder} holds an experiment: continue it with --resume, or choose --out")
            old = _read(path)
            _same(old, definition, folder)
            definition["left_out"] = _left_out(old, definition)
        if writes:
            try:
                write_whole(path, json.dumps(definition, indent=2) + "\n")
            except OSError as error:
                raise ExperimentError(f"cannot write {folder}: {error.strerror}") from None
        self.finished = finished(folder)

    def close(self) -> None:
        """Let others write into it."""
        if self._writer:
            self._writer.close()

    def add(self, one: Finished) -> None:
        """Keep a finished run; it is on the disk then."""
        append_line(self.folder / CELLS, one.to_json())
        self.finished[one.cell] = one

    def run_folder(self, cell: Cell) -> Path:
        """Return where the run directory of a cell is. Raises ExperimentError where a link leads there by now."""
        return _without_links(self.folder, self.folder / RUNS / cell.variant / _folder_name(cell))

    def begun(self) -> list[Path]:
        """Return the run directories of runs that are not finished, in the plan or not any more.

        Raises ExperimentError where a link leads there.
        """
        known = {(cell.variant, _folder_name(cell)) for cell in self.finished}
        there = sorted(path for path in (self.folder / RUNS).glob("*/*") if path.is_dir())
        return [_without_links(self.folder, path) for path in there if (path.parent.name, path.name) not in known]

    def left(self) -> list[Cell]:
        """Return the runs that are still to be made, in order."""
        return [cell for cell in self.experiment.cells() if cell not in self.finished]


def _folder_name(cell: Cell) -> str:
    return f"s{cell.seed}_r{cell.repeat}"


def _without_links(folder: Path, path: Path) -> Path:
    if leads_by_a_link_in(folder, path):
        raise ExperimentError(f"a link leads to {path}: put the folder in its place, or choose another --out")
    return path


def _begun(folder: Path) -> IO | None:
    """Return the lock of an experiment's directory, which is made, before anything is written there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ExperimentError(f"cannot write {folder}: {error.strerror}") from None
    return only_writer(folder / CELLS)


def finished(folder: Path) -> dict[Cell, Finished]:
    """Return the finished runs of an experiment's directory. Raises ExperimentError."""
    path = folder / CELLS
    try:
        lines, _ = whole_lines(path)
        found = [Finished.from_json(parse_json(line)) for line in lines]
        _check_paired(found)
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise ExperimentError(f"{path} is damaged ({error}); choose another --out") from None
    return {one.cell: one for one in found}


def _check_paired(runs: Iterable[Finished]) -> None:
    """Raise ValueError where runs of one seed and repeat, which figures pair, are not of the same problems."""
    problems: dict[tuple[int, int], list[str]] = {}
    for run in runs:
        own = [trace.problem for trace in run.traces]
        if problems.setdefault((run.cell.seed, run.cell.repeat), own) != own:
            raise ValueError(f"{run.cell.name} is of other problems than a run of the same seed and repeat")


def _read(path: Path) -> dict[str, Any]:
    try:
        definition = parse_json(read_own(path, MAX_JSON_BYTES).decode())
        _DEFINITION.check(definition)
        return definition
    except (OSError, ValueError) as error:
        raise ExperimentError(f"{path} cannot be read: {error}; choose another --out") from None


def _digest(variant: Variant) -> str:
    """Return the digest of a variant's solver, which is not run. Raises SolverError."""
    if variant.solver_command is not None:
        return Program(variant.solver_command).sha256
    return script.digest(script.find(variant.solver))


_Variants = tuple[dict[str, dict[str, Any]], dict[str, dict[str, str]]]


def _variants(definition: dict[str, Any]) -> _Variants:
    """Return the variants of a definition by name, and digests of their files: none in an older version's."""
    variants = {variant["name"]: variant for variant in definition.get("variant") or []}
    return variants, {kind: definition.get(kind) or {} for kind in _FILES}


def _ever(definition: dict[str, Any]) -> _Variants:
    """Return the same with those that an experiment once had: its finished runs of them are still there."""
    variants, files = _variants(definition)
    others, their_files = _variants(definition.get("left_out") or {})
    return others | variants, {kind: their_files[kind] | files[kind] for kind in _FILES}


def _left_out(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Return what the new definition leaves out of the variants that an experiment once had."""
    variants, files = _ever(old)
    names = [name for name in variants if name not in _variants(new)[0]]
    left = {kind: {name: of[name] for name in names if name in of} for kind, of in files.items()}
    return {"variant": [variants[name] for name in names], **left}


def _same(old: dict[str, Any], new: dict[str, Any], folder: Path) -> None:
    """Raise ExperimentError where runs of the two could not stand beside each other."""
    different = [key for key in new if key not in (*_FREE, *_FILES) and old.get(key) != new[key]]
    before, files = _ever(old)
    different += [
        f"variant {variant['name']}" for variant in new["variant"]
        if variant["name"] in before and before[variant["name"]] != variant
    ]  # fmt: skip
    different += [
        f"{what} of {name}" for kind, what in _FILES.items() for name, digest in new[kind].items()
        if files[kind].get(name, digest) != digest
    ]  # fmt: skip
    if different:
        changed = ", ".join(different)
        raise ExperimentError(f"{folder} is of another experiment: {changed} changed; choose another --out")
