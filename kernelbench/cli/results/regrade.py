"""`kb regrade`"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kernelbench import escaping
from kernelbench.cli import UNFIT, WRONG_USAGE, fail, json_option, out_option, say, say_json
from kernelbench.formats.claims import ClaimsError
from kernelbench.regrade import document, page
from kernelbench.regrade.rows import claims_of, rows_of
from kernelbench.regrade.summary import best_of_all, summary
from kernelbench.review.record import ReviewError
from kernelbench.run import Run, RunError
from kernelbench.run_files.log import write_named
from kernelbench.views import tables
from kernelbench.views.ranking import labels

_FORMATS = ("terminal", "markdown", "html", "json")
_OF_SUFFIX = {".md": "markdown", ".html": "html", ".json": "json"}


@click.command("regrade")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=click.Path(path_type=Path))
@click.option("--claims", "claims_path", type=click.Path(path_type=Path), metavar="FILE",
              help="Claims to compare with. Without it, claims.jsonl beside the run's solutions.")  # fmt: skip
@click.option("--format", "form", type=click.Choice(_FORMATS),
              help="Without it, what the name of --out ends in, else terminal.")  # fmt: skip
@json_option
@out_option("Write to a file instead of the terminal.")
def command(
    runs: tuple[Path, ...], claims_path: Path | None, form: str | None, as_json: bool, out: Path | None
) -> None:
    """Compare what an archive claims of its kernels with what was measured here.

    Of each kernel: the claim, the status, the settled speedup, the label, and where its speed comes from. Of all:
    inflation, figures under filterings, outcome bands, and the next best honest kernel where the best is rejected.
    Of several runs also the best of all. Review a run first (`kb review RUN --rules`, or --model) for labels beyond
    those that measurements decide.

    \b
    Examples:
      kb import cuda_l1/h100.jsonl -o theirs
      kb eval --solutions theirs/solutions --problem-dir theirs/problems --allow-library -o runs/theirs
      kb regrade runs/theirs -o theirs.html
    """
    form = "json" if as_json else form or _OF_SUFFIX.get(out.suffix if out else "", "terminal")
    try:
        loaded = [Run.load(path) for path in dict.fromkeys(runs)]
        rows = [rows_of(run, claims_of(run, claims_path)) for run in loaded]
    except (RunError, ClaimsError, ReviewError) as error:
        fail(error, WRONG_USAGE)
    found = [summary(those) for those in rows]
    best = best_of_all(rows) if len(rows) > 1 else None
    names = labels(loaded)
    if form == "json":
        data = _data(names, rows, found, best)
        say_json(data) if out is None else _write(out, tables.to_json(data) + "\n")
        return
    parts = [part for of_run in zip(names, rows, found) for part in document.sections(*of_run)]
    parts += [document.best_section(best)] if best else []
    title = page.title_of(names, found[0])
    text = page.page(title, parts, found[0]["curves"]) if form == "html" else document.render(parts, form)
    text = f"{tables.heading(title, form, 1)}\n\n{text}" if form == "markdown" else text
    text = escaping.terminal(text) if form == "terminal" else text
    say(text, nl=False) if out is None else _write(out, text)


def _data(names: list[str], rows: list, found: list[dict[str, Any]], best: dict[str, Any] | None) -> dict[str, Any]:
    runs = [
        {"run": name, **figures, "rows": [row.to_json() for row in those]}
        for name, those, figures in zip(names, rows, found)
    ]
    return {"runs": runs, **({"best_of_all": best} if best else {})}


def _write(out: Path, text: str) -> None:
    try:
        write_named(out, text)
    except OSError as error:
        fail(f"cannot write {out}: {error.strerror}", UNFIT)
    say(out)
