"""Content of TritonBench's files, found out by importing them: started by ``checkout`` in a process of its own.

Sources come as JSON on standard input, the answer leaves as JSON on standard output.
"""

from __future__ import annotations

import contextlib
import json
import sys
from typing import Any
from unittest import mock

from kernelbench.formats.tritonbench.adapter import Problem


def facts(sources: list[dict[str, str]]) -> list[dict[str, Any]]:
    """Return FLOPs and bytes of every shape of each perf file (``work``).

    Where a perf file does not load, ``work`` is empty and ``error`` says why.
    """
    return [_facts(Problem(**source)) for source in sources]


def _facts(problem: Problem) -> dict[str, Any]:
    # a perf file imports the golden file's functions; few call one while they make inputs, and some of these take long
    for functions in (lambda: mock.MagicMock(), lambda: problem.functions):
        try:
            if work := problem.work(problem.metrics(functions())):
                return {"work": work}
            error = "it appends no inputs"
        except BaseException as raised:
            error = f"{type(raised).__name__}: {raised}"
    return {"work": [], "error": error}


def loads(sources: list[dict[str, str]]) -> dict[str, str]:
    """Return why golden and perf files do not load on this machine, by name; what is not named loads."""
    reasons = {}
    for source in sources:
        problem = Problem(**source)
        for what, load in (("golden", lambda p=problem: p.functions), ("perf", lambda p=problem: p.golden_metrics)):
            try:
                with contextlib.redirect_stdout(sys.stderr):
                    load()
            except BaseException as error:
                reasons[problem.name] = f"the {what} file does not load: {type(error).__name__}: {error}"
                break
    return reasons


def main() -> None:
    """Answer one request."""
    functions = {"facts": facts, "loads": loads}
    sources = json.load(sys.stdin)
    with contextlib.redirect_stdout(sys.stderr):
        answer = functions[sys.argv[1]](sources)
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
