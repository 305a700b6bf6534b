"""The page: one HTML file without anything beside it, and no candidate's text where it could act.

Data lies in the page in two forms. What the table needs is JSON, in which no ``<`` is left.
What only an opened candidate needs (records, sources, prompts) is packed: chunks of results as
JSON, gzip, base64, which the browser unpacks when one of them is opened, so that 10,000
results stay quick. Texts reach the document as text nodes only, and the content security
policy allows one script and one style sheet, by their digests.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from importlib import resources
from itertools import islice
from typing import Any

from harness.result import Result
from kernelbench import __version__, escaping
from kernelbench.report import records
from kernelbench.report.overview import overview
from kernelbench.review.labels import NONE, key_of, of_run
from kernelbench.run import Run
from kernelbench.run_files.sources import reference_of, trajectory_of

_CHUNK = 64  # results
_MOST_TEXT = 256 << 20  # characters of sources and attempts, and of references: 25,000 for each of 10,000 results
_SCRIPTS = ("dom", "format", "highlight", "charts", "table", "panel", "summary", "app")
_PLACE = re.compile(r"\{\{(\w+)\}\}")


def report(runs: Sequence[Run]) -> str:
    """The page of finished runs, with everything in it that there is room for."""
    results = [(index, run, result) for index, run in enumerate(runs) for result in run.latest()]
    label_of = [of_run(run) for run in runs]
    trajectories = [trajectory_of(run) for run in runs]
    data = {
        "live": False,
        "chunk": _CHUNK,
        "overview": overview(runs),
        "rows": [
            records.row(result, number, index, label_of[index].get(key_of(result), NONE))
            for number, (index, _, result) in enumerate(results)
        ],
        "attempts": [line for index, lines in enumerate(trajectories) for line in records.outline(lines, index)],
    }
    details = _details(results, [records.by_sample(trajectory) for trajectory in trajectories])
    chunks = {
        f"details-{number}": _packed(f"[{','.join(islice(details, _CHUNK))}]")
        for number in range(math.ceil(len(results) / _CHUNK))
    }
    return render(data, {**chunks, "references": _packed(to_json(_references(runs)))})


def _details(
    results: Iterable[tuple[int, Run, Result]], attempts: Sequence[records.Attempts]
) -> Iterator[str]:
    """Yield the detail of each result as JSON, its texts too as long as there is room.

    Many results may name one file, so a page may be larger than its runs by any factor. The first texts that have no
    room are the last that are looked at: else a large one would be read for each of them.
    """
    room = _MOST_TEXT
    for index, run, result in results:
        texts = records.texts(run, result, attempts[index]) if room > 0 else {}
        room -= sum(len(to_json(text)) for text in texts.values())
        if room < 0 or not texts:
            texts = {"source": None, "attempt": None, "left_out": True}
        yield to_json({**records.detail(result), **texts})


def render(data: dict[str, Any], chunks: dict[str, str] | None = None) -> str:
    """The page of ``data`` and packed ``chunks`` by their element ids; live where the data says so."""
    style, script = _asset("style.css"), _script()
    names = ", ".join(run["name"] for run in data["overview"]["runs"])
    values = {
        "policy": policy(data["live"]),
        "title": escaping.html(f"{names}: kernelbench"),
        "version": escaping.html(__version__),
        "style": style,
        "script": script,
        "data": escaping.script_json(to_json(data)),
        "chunks": "\n".join(
            f'<script type="text/plain" id="{name}">{chunk}</script>' for name, chunk in (chunks or {}).items()
        ),
    }  # fmt: skip
    return _PLACE.sub(lambda place: values[place[1]], _asset("page.html"))


def policy(live: bool) -> str:
    """Return the content policy: our own script and style, and for a live page the server that it comes from."""
    return (
        f"default-src 'none'; script-src {_source(_script())}; style-src {_source(_asset('style.css'))}; "
        f"connect-src {chr(39)}{'self' if live else 'none'}{chr(39)}; base-uri 'none'; form-action 'none'"
    )


def _references(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Return the references of each run by problem, as long as there is room, as ``_details`` does."""
    room, found = _MOST_TEXT, []
    for run in runs:
        found.append({})
        for problem in dict.fromkeys(result.problem for result in run.latest()):
            reference = reference_of(run, problem) if room > 0 else None
            room -= len(to_json(reference))
            found[-1][problem] = reference if room >= 0 else {"left_out": True}
    return found


def to_json(data: Any) -> str:
    """JSON as browsers read it, which know no NaN and no infinity: those become text."""
    try:
        return json.dumps(data, separators=(",", ":"), allow_nan=False)
    except ValueError:
        return json.dumps(_finite(data), separators=(",", ":"))


def _finite(data: Any) -> Any:
    if isinstance(data, float) and not math.isfinite(data):
        return str(data)
    if isinstance(data, dict):
        return {key: _finite(value) for key, value in data.items()}
    return [_finite(value) for value in data] if isinstance(data, list | tuple) else data


def _packed(text: str) -> str:
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def _source(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _script() -> str:
    """Return all scripts as one, in a scope of its own."""
    parts = "\n".join(_asset(f"{name}.js") for name in _SCRIPTS)
    return f"(() => {{\n'use strict';\n{parts}}})();\n"


def _asset(name: str) -> str:
    return (resources.files(__package__) / "assets" / name).read_text(encoding="utf-8")
