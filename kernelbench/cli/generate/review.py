"""`kb review`"""

from __future__ import annotations

import sys
from pathlib import Path

import click
from tabulate import tabulate
from tqdm import tqdm

from kernelbench.cli import INTERRUPTED, UNFIT, WRONG_USAGE, Number, fail, say, say_json
from kernelbench.cli.model_options import model_options
from kernelbench.endpoint import ModelError
from kernelbench.review import record
from kernelbench.review.labels import ACCEPTED, labels
from kernelbench.review.record import ReviewError
from kernelbench.review.reviewer import Reviewer
from kernelbench.review.reviewing import missing, review
from kernelbench.run import Run, RunError

_TRIES, _TIMEOUT_S = 5, 120  # somebody is waiting


@click.command("review")
@click.argument("path", type=click.Path(path_type=Path), metavar="RUN")
@model_options(required=True)
@click.option(
    "--max-usd", type=Number(min=0), default=5.0, show_default=True,
    help="Stop before it costs more, as far as --price tells.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")  # fmt: skip
def command(path: Path, endpoint_of, max_usd: float, as_json: bool) -> None:
    """Have a model review the correct results of a run: was their speed earned?

    Sends the sources of candidates and references to the endpoint. Answers go into reviews.jsonl in the run's
    directory and change no result; what was answered once is not asked again. Exit status: 0 done, 3 the endpoint
    or the budget ended it early.

    \b
    Examples:
      kb review runs/mine --model gpt-4o-mini --price 0.15,0.60 --max-usd 1
      kb review runs/mine --model local --base-url http://localhost:8000/v1
    """
    try:
        run, endpoint = Run.load(path), endpoint_of(tries=_TRIES, timeout_s=_TIMEOUT_S)
        todo = missing(run, endpoint.model)
    except (RunError, ReviewError, ModelError) as error:
        fail(error, WRONG_USAGE)
    stopped = None
    try:
        reviewer = Reviewer(endpoint, max_usd)
        for _ in tqdm(review(run, reviewer, todo), total=len(todo), unit="review", file=sys.stderr, disable=None):
            pass
    except ReviewError as error:
        stopped = error
    except KeyboardInterrupt:
        say("interrupted; every answer is kept", err=True)
        sys.exit(INTERRUPTED)
    _show(run, endpoint.model, as_json)
    if stopped:
        fail(stopped, UNFIT)


def _show(run: Run, model: str, as_json: bool) -> None:
    reviews = [one for one in record.load(run.path) if one.model == model]
    results = run.solutions()
    of = labels(results, reviews)
    said = {(one.problem, one.solution): one for one in reviews}
    rows = [
        {
            "problem": problem,
            "solution": solution,
            "label": label,
            "accepted": label in ACCEPTED,
            "category": said[problem, solution].category if (problem, solution) in said else "",
            "reason": said[problem, solution].reason if (problem, solution) in said else "",
        }
        for (problem, solution), label in of.items()
    ]
    if as_json:
        say_json(rows)
        return
    say(tabulate([tuple(row.values()) for row in rows], list(rows[0]) if rows else (), maxcolwidths=50))
    spent = sum(one.usd for one in reviews)
    say(f"\n{sum(row['accepted'] for row in rows)} of {len(rows)} accepted; {spent:.4f} USD")
