"""A checkout of TritonBench-G as problems: one generated module for each golden file that has a perf file.

``level`` of a problem is its difficulty, 1 to 5, and its number the place of its name in the alphabetical order of the
statistics file, so ids do not change where files are missing. Modules and what is known of each file are kept in the
cache folder, keyed by the content of everything that they are made of.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from harness.compile.cache import cache_root
from harness.json_text import parse_json, parse_writable_json
from harness.problem.module import ProblemError, ProblemFile, ProblemId
from harness.process.spawn import command_of, environment
from kernelbench.formats.archive import text_of
from kernelbench.formats.tritonbench import generated
from kernelbench.formats.tritonbench.generated import Entry
from kernelbench.run_files.log import write_whole

STATISTICS = Path("data/TritonBench_G_v1.json")
GOLDEN = Path("data/TritonBench_G_v1")
PERF = Path("performance_metrics/perf_G/golden_metrics")
_INSTRUCTIONS = ("simp_instru", "comp_instru")  # a model is given one of them
_MOST_FILES = 500  # the benchmark has 184; an answer is searched for the instruction of each
_MOST_CHARACTERS = 64 << 20  # of all golden and perf files together: the benchmark has 2.6 million
SEPARATOR = "#" * 146  # between a golden file's code and its test


def is_checkout(root: Path) -> bool:
    """Return whether ``root`` holds TritonBench-G."""
    return (root / STATISTICS).is_file()


def names(root: Path) -> dict[str, ProblemId]:
    """The id of each golden file of the statistics, by its name without ``.py``."""
    records = {Path(record["file"]).stem: record for record in _statistics(root)}
    numbered = enumerate(sorted(records), start=1)
    return {name: ProblemId(int(records[name]["difficulty"]), number) for number, name in numbered}


def entries(root: Path) -> list[Entry]:
    """All golden files of the statistics. Raises ProblemError where these cannot be read, or are too large together."""
    ids = names(root)
    records = {Path(record["file"]).stem: record for record in _statistics(root)}
    found, left = [], _MOST_CHARACTERS
    for name, problem_id in ids.items():
        golden, perf = _text(root, root / GOLDEN / f"{name}.py"), _text(root, root / PERF / f"{name}_perf.py")
        left -= len(golden) + len(perf)
        if left < 0:
            raise ProblemError(f"the files of {root} have more than {_MOST_CHARACTERS >> 20} Mi characters together")
        code, _, test = golden.partition(SEPARATOR)
        instructions = tuple(" ".join(str(records[name].get(key, "")).split()) for key in _INSTRUCTIONS)
        found.append(Entry(problem_id, name, instructions, code, test.lstrip("#"), perf))
    return found


def find(root: Path) -> list[ProblemFile]:
    """Return the problems of a checkout, in order of their ids; those without a golden or a perf file are left out.

    What a perf file makes is found out once, without data, in a process of its own; each time anew where that failed,
    which another version of PyTorch or Triton may change. Raises ProblemError.
    """
    found = _complete(root)
    missing = [entry for entry in found if not _module_path(entry).exists()]
    for entry, facts in zip(missing, _apart("facts", missing) if missing else ()):
        path = _module_path(entry) if facts["work"] else _without_shapes(entry)
        write_whole(_made(path), generated.module(entry, facts))
    paths = [path if (path := _module_path(entry)).exists() else _without_shapes(entry) for entry in found]
    return [ProblemFile(entry.id, entry.name, path) for entry, path in zip(found, paths)]


def listed(root: Path) -> list[ProblemFile]:
    """Return the same with the golden files instead of modules, by their names: nothing but the statistics is read."""
    files = [ProblemFile(problem_id, name, root / GOLDEN / f"{name}.py") for name, problem_id in names(root).items()]
    found = [file for file in files if file.path.is_file() and (root / PERF / f"{file.name}_perf.py").is_file()]
    return sorted(found, key=lambda file: file.id)


def _complete(root: Path) -> list[Entry]:
    found = sorted((entry for entry in entries(root) if entry.golden and entry.perf), key=lambda entry: entry.id)
    if not found:
        raise ProblemError(f"{root} holds {STATISTICS} and none of its files: {GOLDEN}/*.py and {PERF}/*_perf.py")
    return found


def unloadable(root: Path, wanted: set[str]) -> dict[str, str]:
    """Why the ``wanted`` golden files or their perf files do not load on this machine, by name.

    Every golden file is imported, in a process of its own. Raises ProblemError.
    """
    return _apart("loads", [entry for entry in entries(root) if entry.name in wanted])


def _module_path(entry: Entry) -> Path:
    return _path_in(entry.key, entry)


def _without_shapes(entry: Entry) -> Path:
    """The module of a problem whose shapes could not be found out; it has its test alone."""
    return _path_in(f"{entry.key}_test", entry)


def _path_in(folder: str, entry: Entry) -> Path:
    return cache_root() / "tritonbench" / folder / f"level{entry.id.level}" / f"{entry.id.number}_{entry.name}.py"


def _made(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _apart(function: str, wanted: list[Entry]):
    """Return the value of a function of ``inspection`` in a process that may import torch, and files of others."""
    sources = [{"name": e.name, "golden": e.golden, "perf": e.perf, "test": e.test} for e in wanted]
    command = [*command_of("kernelbench.formats.tritonbench.inspection"), function]
    print(f"reading {len(wanted)} files of TritonBench", file=sys.stderr)
    done = subprocess.run(
        command, input=json.dumps(sources), capture_output=True, encoding="utf-8", errors="backslashreplace",
        env=environment(),
    )  # fmt: skip
    try:
        answer = parse_json(done.stdout) if done.returncode == 0 else None
    except ValueError:  # a file of the benchmark wrote there, or ended the process
        answer = None
    if answer is None:
        raise ProblemError(f"TritonBench's files cannot be read: {done.stderr.strip()[-2000:]}")
    return answer


def _statistics(root: Path) -> list[dict]:
    path = root / STATISTICS
    try:
        records = parse_writable_json(_text(root, path))
        if len(records) > _MOST_FILES:
            raise ValueError(f"it names {len(records):,} files, and at most {_MOST_FILES:,} are read")
        if not all(type(record["file"]) is str and 1 <= int(record["difficulty"]) <= 5 for record in records):
            raise ValueError("a file is no text, or a difficulty not from 1 to 5")
    except (ValueError, TypeError, KeyError, OverflowError) as error:
        raise ProblemError(
            f"{path} is not TritonBench's statistics, a list of objects with file and difficulty: {error!r}"
        ) from None
    return records


def _text(root: Path, path: Path) -> str:
    """Return the text of a file of the checkout; '' where there is none."""
    if not path.exists():
        return ""
    text, why_not = text_of(root, path)
    if text is None:
        raise ProblemError(f"cannot read {path}: it {why_not}")
    return text
