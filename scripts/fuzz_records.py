"""Committed records with changed values: does a view end in anything but a text or a clear error?

    python scripts/fuzz_records.py --runs 2000 --seed 1

A run of committed results, some with what no committed result has (held-out workloads, a second workload, a first
measurement), gets a few values of other types, sizes or texts, or loses a field: in its log, its configuration, its
trajectory, model calls, reviews, claims or what it did not evaluate. It must be refused with a RunError, or give some
of the views of `kb leaderboard`, `compare`, `report`, `export`, `schedule replay`, `lineage`, `regrade`, `review` and
`profile`. Exit status 1 and the changed values where anything else happens.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from harness.problem.module import ProblemError
from kernelbench.formats import claims, exchange
from kernelbench.formats.claims import ClaimsError
from kernelbench.formats.exchange import ExchangeError
from kernelbench.metrics import scheduling
from kernelbench.regrade import document
from kernelbench.regrade.rows import claims_of, rows_of
from kernelbench.regrade.summary import summary
from kernelbench.report import page
from kernelbench.review import record as reviews
from kernelbench.review import rules
from kernelbench.review.bounds import bounds_of
from kernelbench.run import CONFIG, LOG, Run, RunError
from kernelbench.run_files import unevaluated
from kernelbench.run_files.sources import TRAJECTORY
from kernelbench.scheduling import text as schedule_text
from kernelbench.scheduling import traces
from kernelbench.scheduling.study import Grid, Variant, study
from kernelbench.suite import SelectorError
from kernelbench.views import comparison, leaderboard, lineage, ranking, tables, timing_text

_CLEAR = (RunError, ClaimsError, ExchangeError, ProblemError, SelectorError)
_NEEDED = {("", name) for name in ("format", "problem", "solution", "status", "workload")}
_NEEDED |= {("solution", name) for name in ("name", "sha256", "sample", "kind", "language")} | {("workload", "name")}
_RESULTS = Path(__file__).parents[1] / "results" / "h100"
_SAMPLES = 3  # rounds of a record that are kept: a view takes as long as they are many
_VALUES = [
    None, "", [], {}, -1, 0, 1, 0.5, 1e308, -1e308, 1e-320, float("nan"), float("inf"), float("-inf"), -0.0, True,
    10**400, 10**30, -(10**18), 2**63, {"a": {"b": 1}}, {"": {}}, {"speedup": 1}, [1, "a"], [[]], [None], ["x"],
    [1, 2], [1, 2, 3], [1e308] * 5, [float("nan")] * 3, "x", "ok", "faster", "1/19", "1/99", "1.5", "NaN", "=1+1",
    "9" * 5000, "\ud800", "\0", "\x1b[31m", "::error::x", "<script>", "../../etc/passwd", "1/" + "9" * 5000,
]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for what, count in fuzz_records(options.runs, options.seed).most_common():
        print(f"{count:8d}  {what}")


def fuzz_records(count: int, seed: int) -> Counter:
    """Return how so many changed runs ended; raises AssertionError where it was neither a view nor a clear error."""
    warnings.simplefilter("ignore")  # of numpy, about numbers that are too large to tell something
    chance, endings, honest = random.Random(seed), Counter(), list(_honest())
    with tempfile.TemporaryDirectory() as folder:
        intact = _written(Path(folder, "intact"), honest[0])
        for _ in range(count):
            files = copy.deepcopy(chance.choice(honest))
            changes = [f"bare: {_laid_bare(files[LOG], chance)}"] if chance.random() < 0.3 else []
            changes += [_changed(files, chance) for _ in range(chance.choice([1, 1, 1, 2, 4]))]
            _written(Path(folder, "changed"), files)
            views = chance.sample(list(_VIEWS), 3)
            endings.update(_endings(Path(folder, "changed"), intact, views, changes))
    return endings


def _honest() -> Iterator[dict[str, list[Any]]]:
    """Yield runs as lines by file: each with a few committed results, and all that can stand beside them."""
    for folder, places in (("examples", (0, 7, 20)), ("template", (0, 30, 60)), ("cuda_l1", (0, 1, 40))):
        lines = (_RESULTS / folder / LOG).read_text().splitlines()
        results = [_short(json.loads(lines[place])) for place in places]
        results += _enriched(next(result for result in results if result["timing"]))
        tried = [{"problem": r["problem"], "sample": r["solution"]["sample"], "parent": None, "turn": 0, "prompt": [],
                  "answer": "", "tokens": {"prompt": 10, "completion": 5}, "cost_usd": 0.1, "seconds": 1.0,
                  "tags": {"iteration": 0, "strategy": "tile"}} for r in results[:3]]  # fmt: skip
        known = [{"problem": r["problem"], "solution": r["solution"]["name"], "sha256": r["solution"]["sha256"]}
                 for r in results[:3]]  # fmt: skip
        answer = {"model": "m", "answer": "gaming", "category": "fake_transpose", "reason": "", "usd": 0.0, "key": "k"}
        skipped = {"kind": "skipped", "problem": "1/2", "problem_name": "", "solution": "s", "sample": 0,
                   "workload": None, "reason": "no room", "after": 0}  # fmt: skip
        yield {
            CONFIG: [json.loads((_RESULTS / folder / CONFIG).read_text())],
            LOG: results,
            TRAJECTORY: tried,
            traces.CALLS: [{key: line[key] for key in ("problem", "tokens", "cost_usd", "tags")} for line in tried],
            reviews.LOG: [one | answer for one in known],
            claims.LOG: [one | {"speedups": {"eager": 2.0}, "status": "ok", "ms": 1.0} for one in known],
            unevaluated.UNEVALUATED: [skipped, {"kind": "unmapped", "files": [{"solution": "x", "reason": "no id"}]}],
        }


def _short(result: dict[str, Any]) -> dict[str, Any]:
    for timing in filter(None, (result["timing"], *result["baselines"].values())):
        timing["samples_ms"] = timing["samples_ms"][: _SAMPLES * timing["calls_a_round"]]
    return result


def _enriched(result: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a second measurement of a result, with held-out workloads, and its result on a second workload."""
    found = {"status": "ok", "draw": "", "message": "", "median_ms": 1.0, "baseline_ms": 2.0, "speedup": 2.0,
             "verdict": "faster", "interval": [1.9, 2.1]}  # fmt: skip
    held_out = [found, {**found, "status": "wrong_value", "draw": "small", "message": "off"}]
    confirms = {"speedup": 1.1, "settled_speedup": 1.1, "verdict": "faster", "interval": {"low": 1.0, "high": 1.2}}
    yield {**copy.deepcopy(result), "held_out": held_out, "confirms": confirms}
    yield {**copy.deepcopy(result), "workload": {**result["workload"], "name": "small", "sizes": {"n": 2}}}


def _changed(files: dict[str, list[Any]], chance: random.Random) -> str:
    """Change a value somewhere in a run, mostly in its log, and return what was done."""
    name = chance.choice([LOG] * 6 + list(files))
    line = chance.randrange(len(files[name]))
    place, steps = files[name][line], []
    while isinstance(place, (dict, list)) and place and (not steps or chance.random() < 0.85):
        above, step = place, chance.choice(list(place)) if isinstance(place, dict) else chance.randrange(len(place))
        place = above[step]
        steps.append(step)
    if not steps:
        return "nothing"
    if chance.random() < 0.12:
        del above[step]
        return f"{name}[{line}] {steps} deleted"
    above[step] = copy.deepcopy(chance.choice(_VALUES))
    return f"{name}[{line}] {steps} = {above[step]!r:.100}"


def _laid_bare(results: list[dict[str, Any]], chance: random.Random) -> list[str]:
    """Take fields of the first two levels, and of timings, from all results, and return their names."""
    share, taken = chance.choice([0.1, 0.3, 0.6]), {}
    for result in results:
        objects = {name: [value] for name, value in result.items() if isinstance(value, dict)}
        objects |= {"": [result], "baselines": list(result["baselines"].values())}
        for above, those in objects.items():
            for one in filter(None, those):
                for name in sorted(one):
                    if (above, name) not in _NEEDED and taken.setdefault(f"{above}/{name}", chance.random() < share):
                        del one[name]
    return [name for name in taken if taken[name]]


def _written(folder: Path, files: dict[str, list[Any]]) -> Path:
    folder.mkdir(exist_ok=True)
    for name, lines in files.items():
        (folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def _endings(folder: Path, intact: Path, views: list[str], changes: list[str]) -> Iterator[str]:
    try:
        run, other = Run.load(folder), Run.load(intact)
    except RunError as error:
        assert str(error)
        yield "records: refused"
        return
    for view in views:
        try:
            assert isinstance(_VIEWS[view](run, other), str)
            yield f"records: {view}"
        except _CLEAR as error:
            assert str(error)
            yield f"records: {view} refused"
        except Exception:
            traceback.print_exc()
            print(f"{view} of a run with {ascii(changes)}", file=sys.stderr)
            raise AssertionError("a record became more than a view or a clear error") from None


def _leaderboard(run: Run, other: Run) -> str:
    data = ranking.standings([run, other])
    return "".join(ranking.render(data, form) for form in tables.FORMATS)


def _summary(run: Run, other: Run) -> str:
    data = leaderboard.summary(run, ["1/1"])
    return leaderboard.markdown(run, data) + leaderboard.fast_p_table(data) + tables.to_json(data)


def _compare(run: Run, other: Run) -> str:
    pairs = (run, other), (other, run)
    return "".join(comparison.render(*pair, form) for pair in pairs for form in tables.FORMATS)


def _export(run: Run, other: Run) -> str:
    for form in ("csv", "parquet", "kernelbench", "baseline", "tritonbench"):
        exchange.export([run], form, run.path / "exported", level=1)
    return "written"


def _replay(run: Run, other: Run) -> str:
    variants = [Variant(one.path.name, traces.of_run(one, ["1/1", "1/19"])) for one in (run, other)]
    data = study(variants, Grid(scheduling.grid([0.5], [4])))
    return "".join(schedule_text.render(data, form) for form in tables.FORMATS)


def _lineage(run: Run, other: Run) -> str:
    return lineage.text({"run": lineage.of_run(run)})


def _regrade(run: Run, other: Run) -> str:
    rows = rows_of(run, claims_of(run, run.path / claims.LOG))
    return document.render(document.sections("run", rows, summary(rows)), "markdown")


def _review(run: Run, other: Run) -> str:
    return "".join(repr((rules.decide(one), bounds_of(run, one))) for one in run.solutions())


def _profile(run: Run, other: Run) -> str:
    return "".join(map(timing_text.page, run.results))


_VIEWS: dict[str, Callable[[Run, Run], str]] = {
    "leaderboard": _leaderboard,
    "summary": _summary,
    "compare": _compare,
    "report": lambda run, other: page.report([run, other]),
    "export": _export,
    "schedule replay": _replay,
    "lineage": _lineage,
    "regrade": _regrade,
    "review": _review,
    "profile": _profile,
}


if __name__ == "__main__":
    main()
