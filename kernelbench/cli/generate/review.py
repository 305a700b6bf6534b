"""`kb review`"""

from __future__ import annotations

import sys
from pathlib import Path

import click
from tqdm import tqdm

from kernelbench.cli import INTERRUPTED, UNFIT, WRONG_USAGE, Number, fail, say, say_json
from kernelbench.cli.model_options import model_options
from kernelbench.endpoint import ModelError
from kernelbench.metrics import outcomes
from kernelbench.review import labels, record, rules
from kernelbench.review.record import ReviewError, Unanswered
from kernelbench.review.reviewer import Reviewer
from kernelbench.review.reviewing import review, reviewed
from kernelbench.run import Run, RunError
from kernelbench.views import tables

_TRIES, _TIMEOUT_S = 5, 120  # somebody is waiting


@click.command("review")
@click.argument("path", type=click.Path(path_type=Path), metavar="RUN")
@click.option("--rules", "by_rules", is_flag=True,
              help="Ask no model: label what findings, profile and held-out workloads decide.")
@model_options()
@click.option(
    "--max-usd", type=Number(min=0), default=5.0, show_default=True,
    help="Stop before it costs more, as far as --price tells.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")  # fmt: skip
def command(path: Path, by_rules: bool, endpoint_of, max_usd: float, as_json: bool) -> None:
    """Have a model, or rules alone, review the correct results of a run: was their speed earned?

    A model gets the sources of candidates and references, measurements, the operator table and bounds. Answers go
    into reviews.jsonl in the run's directory and change no result; what was answered once is not asked again. Rules
    send nothing, and leave open what they cannot decide. Exit status: 0 done, 3 some are not reviewed, for the
    endpoint, the model or the budget.

    \b
    Examples:
      kb review runs/mine --model gpt-4o-mini --price 0.15,0.60 --max-usd 1
      kb review runs/mine --model local --base-url http://localhost:8000/v1
      kb review runs/mine --rules
    """
    try:
        run, endpoint = Run.load(path), endpoint_of(timeout_s=_TIMEOUT_S)
        if by_rules == (endpoint is not None):
            raise click.UsageError("name one reviewer: --model NAME, or --rules")
        if by_rules:
            list(rules.review(run, reviewed(run)))
            _show(run, as_json)
            return
        endpoint.tries = _TRIES
        todo = reviewed(run)
        record.load(run.path)
        labels.of_run(run)  # which cannot be read after all is paid for where it cannot be now
    except (RunError, ReviewError, ModelError) as error:
        fail(error, WRONG_USAGE)
    stopped, unanswered = None, []
    try:
        reviews = review(run, Reviewer(endpoint, max_usd), todo)
        for one in tqdm(reviews, total=len(todo), unit="review", file=sys.stderr, disable=None):
            unanswered += [one] if isinstance(one, Unanswered) else []
    except ReviewError as error:
        stopped = error
    except KeyboardInterrupt:
        say("interrupted; every answer is kept", err=True)
        sys.exit(INTERRUPTED)
    _show(run, as_json)
    for one in unanswered:
        say(f"not reviewed: {one}", err=True)
    if stopped:
        fail(stopped, UNFIT)
    if unanswered:
        sys.exit(UNFIT)


def _show(run: Run, as_json: bool) -> None:
    results = run.solutions()
    of = labels.of_run(run)
    rows = [
        {
            "problem": problem,
            "solution": solution,
            "label": label.band,
            "accepted": label.accepted,
            "category": label.category,
            "by": label.by,
            "reason": label.reason,
        }
        for (problem, solution), label in of.items()
    ]
    if as_json:
        say_json(rows)
        return
    columns = list(rows[0]) if rows else []
    widths = [50 if column == "reason" else None for column in columns]  # a name that is wrapped loses blanks
    say(tables.table(columns, [tuple(row.values()) for row in rows], "terminal", widths=widths))
    spent = sum(one.usd for one in record.load(run.path))
    bands = outcomes.bands(results, labels.band_of(of))
    say("\n" + ", ".join(f"{count} {band}" for band, count in bands.items() if count))
    say(f"{sum(row['accepted'] for row in rows)} of {len(rows)} accepted; {spent:.4f} USD")
