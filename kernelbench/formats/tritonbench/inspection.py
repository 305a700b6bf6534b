"""What TritonBench's files hold, found out by importing them: started by ``checkout`` in a process of its own.

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
    """Return FLOPs and bytes of every shape of each perf file (``work``); no golden file is run.

    Where a perf file does not load, ``work`` is empty and ``error`` says why.
    """
    return [_facts(Problem(**source)) for source in sources]


def _facts(problem: Problem) -> dict[str, Any]:
    try:
        # a perf file imports the golden file's functions, and calls none while it makes inputs, but for layers
        return {"work": problem.work(problem.metrics(mock.MagicMock()))}
    except BaseException as error:
        return {"work": [], "error": f"{type(error).__name__}: {error}"}


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
    functions = {"facts": facts, "loads": loads}
    sources = json.load(sys.stdin)
    with contextlib.redirect_stdout(sys.stderr):
        answer = functions[sys.argv[1]](sources)
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
