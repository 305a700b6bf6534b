"""The second measurement of each problem's best solution, which is the one that counts.

The best of several noisy measurements looks better than it is. So what is to stand as the
best of several samples is timed once more, by new processes, until the best of every problem
has been. What needs it follows from the log, so a run that was interrupted goes on with it.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from harness.compile.cost import compiles
from harness.result import Result
from harness.solution.private_copy import Changed, PrivateCopies
from kernelbench.evaluation.executor import (
    Evaluated,
    Executor,
    Options,
    Pair,
    Skipped,
    Status,
    closed_or_killed,
    open_executor,
)
from kernelbench.metrics import winners
from kernelbench.run import Run

OTHER_PROBLEM = "its problem changed during the run: evaluate it again when that is written"


def confirm_best(
    run: Run,
    pair_of: Callable[[Result], Pair | None],
    copies: PrivateCopies,
    opened: Callable[[bool], AbstractContextManager[Executor]],
    record: Callable[[Evaluated], None],
    started: Callable[[int], None],
    status: Status,
) -> list[Skipped]:
    """Measure the best of several solutions of each problem again; return those that could not be evaluated.

    Parameters
    ----------
    pair_of
        Returns problem and solution of a result of the run; None where they are not at hand any more.
    copies
        Where they are copied for this. What others leave no room for is measured after them.
    opened
        Opens an executor, as ``fresh`` does; is told whether there is anything to build.
    record
        Takes each new result, as the first measurements were taken.
    started
        Is told how many measurements follow.
    status
        Is told what goes on, as by an executor.
    """
    skipped: list[Skipped] = []
    if not (todo := _todo(run, pair_of, copies, skipped)):
        return skipped
    with opened(any(compiles(solution) for _, (_, solution) in todo)) as executor:
        while todo:
            started(len(todo))
            for workload in dict.fromkeys(part.workload["name"] for part, _ in todo):
                first = {pair[1].name: (part, pair) for part, pair in todo if part.workload["name"] == workload}
                pairs = [pair for _, pair in first.values()]
                with contextlib.closing(executor.evaluate(pairs, status, workload)) as items:
                    for item in items:
                        if isinstance(item, Skipped):
                            skipped.append(item)
                            continue
                        part, _ = first[item.solution.name]
                        if part.problem_sha256 and item.result.problem_sha256 != part.problem_sha256:
                            skipped.append(Skipped(item.solution, OTHER_PROBLEM, changed=True))
                            continue
                        item.result.confirms = winners.first_measurement(part)
                        item.result.held_out = part.held_out
                        record(item)
            todo = _todo(run, pair_of, copies, skipped)
    return skipped


@contextlib.contextmanager
def fresh(options: Options, builds: bool) -> Iterator[Executor]:
    """Open an executor for a while: new judges, so that nothing of the first measurement is in the second.

    What held-out workloads say is known from the first.
    """
    executor = open_executor(dataclasses.replace(options, held_out=0), builds)
    with closed_or_killed(executor):
        yield executor


def _todo(
    run: Run, pair_of: Callable[[Result], Pair | None], copies: PrivateCopies, skipped: list[Skipped]
) -> list[tuple[Result, Pair]]:
    """Return what is to be measured again now: each workload of each best solution, with problem and solution.

    A solution whose copy finds no room beside the others' has its turn once they are measured. If there is no other, it
    is among the ``skipped``.
    """
    copies.release()
    given_up = {(str(one.solution.problem), one.solution.name) for one in skipped}
    found, without_room = [], []
    for best in winners.unconfirmed(run.solutions()):
        pair = pair_of(best)
        if pair is None or (best.problem, best.solution["name"]) in given_up:
            continue
        file, solution = pair
        try:
            copy = copies.of(solution)
        except Changed:
            continue
        except OSError as error:
            without_room.append(Skipped(solution, f"its files cannot be copied: {error.strerror}"))
            continue
        if copy.refused and not solution.refused:  # there was room when it was measured first
            without_room.append(Skipped(solution, copy.refused))
            continue
        pair = file, copy
        found += [(part, pair) for part in getattr(best, "parts", [best]) if part.confirms is None]
    if not found:
        skipped += without_room
    return found
