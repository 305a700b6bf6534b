"""Count the files on the path of one evaluation, and how often it changes from one to another.

    python scripts/evaluation_path.py [--json path.json]

Evaluates one C++ solution of 1/19 on the CPU under a profiler, with its build at hand: `kb eval` in the main process,
then `harness.judge.evaluate.evaluate` as a judge calls it. The path is what decides what happens next: the modules in
``PATH``. Those below it (metrics, views, problems, processes, timing, integrity, and so on) are named by their calls
and can be read on their own. A change of file is a call from a function of one file on the path to one of another.
``calls`` has all of them; ``steps`` counts each pair of functions once, as a reader does who reads a loop once.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import io
import json
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

_ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(_ROOT))

import torch  # noqa: E402

from harness import device as devices  # noqa: E402
from harness.compile import BuildContext, build  # noqa: E402
from harness.judge.conditions import Conditions  # noqa: E402
from harness.judge.evaluate import evaluate  # noqa: E402
from harness.problem.module import load_problem  # noqa: E402
from harness.process.fork_server import ForkServer  # noqa: E402
from harness.solution.discover import read_solution  # noqa: E402
from kernelbench import cli, suite  # noqa: E402

_SOLUTION = _ROOT / "examples" / "cpp" / "relu.cpp"
_PACKAGES = tuple(str(_ROOT / package) + os.sep for package in ("harness", "kernelbench"))
PATH = {
    "main process": (
        "kernelbench/cli/", "kernelbench/evaluation/", "kernelbench/run.py", "kernelbench/run_files/",
        "kernelbench/suite.py",
    ),
    "judge": ("harness/judge/",),
}  # fmt: skip
_MEMORY_BYTES = 4 << 30


class Trace:
    """Calls between files on the path; ``calls`` by both functions, each as file and name."""

    def __init__(self, rooms: tuple[str, ...]) -> None:
        self._rooms = rooms
        self.calls: collections.Counter[tuple[tuple[str, str], tuple[str, str]]] = collections.Counter()

    def see(self, frame: FrameType, event: str, argument: object) -> None:
        """Note a call; a profiler's function."""
        file = _file(frame)
        if event != "call" or not file.startswith(self._rooms) or frame.f_code.co_name == "<module>":
            return
        caller = frame.f_back
        while caller is not None and not _file(caller):  # a library of others calls back
            caller = caller.f_back
        source = _file(caller) if caller else ""
        if source != file and source.startswith(self._rooms):
            self.calls[(source, caller.f_code.co_name), (file, frame.f_code.co_name)] += 1

    def figures(self) -> dict[str, object]:
        """Return the files with the calls into each, and how often the file changes."""
        entered: collections.Counter[str] = collections.Counter()
        for (source, _), (file, _) in self.calls:
            entered[source] += 0
            entered[file] += 1
        files = dict(entered.most_common())
        return {"files": files, "steps": len(self.calls), "calls": sum(self.calls.values())}


def _file(frame: FrameType) -> str:
    name = frame.f_code.co_filename
    return str(Path(name).relative_to(_ROOT)) if name.startswith(_PACKAGES) else ""


@contextlib.contextmanager
def _profiled(rooms: tuple[str, ...]) -> Iterator[Trace]:
    trace = Trace(rooms)
    threading.setprofile(trace.see)
    sys.setprofile(trace.see)
    try:
        yield trace
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def _main_process(out: Path) -> Callable[[], None]:
    def run() -> None:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            cli.main(["eval", str(_SOLUTION), "--device", "cpu", "-o", str(out)], standalone_mode=False)

    return run


def _judge(server: ForkServer) -> Callable[[], None]:
    problem = load_problem(suite.find("1/19")[0])
    solution = read_solution(_SOLUTION, problem=problem.id)
    conditions = Conditions(torch.device("cpu"), memory_bytes=_MEMORY_BYTES)
    arch = devices.architecture(conditions.device)
    artefact = build(solution, BuildContext(server, arch, torch.__version__, 300, _MEMORY_BYTES, jobs=2))
    workload = problem.workload_for(None, "cpu")
    return lambda: evaluate(workload, solution, artefact, conditions, server)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="where to write the figures")
    options = parser.parse_args()
    found = {}
    with tempfile.TemporaryDirectory() as folder, ForkServer() as server:
        os.environ["KERNELBENCH_CACHE"] = str(Path(folder, "cache"))
        for name, run in (
            ("main process", lambda attempt: _main_process(Path(folder, f"run{attempt}"))),
            ("judge", lambda attempt: _judge(server)),
        ):
            run(0)()  # builds, and imports what is imported late
            again = run(1)
            with _profiled(PATH[name]) as trace:
                again()
            found[name] = trace.figures()
    for name, figures in found.items():
        files, steps, calls = len(figures["files"]), figures["steps"], figures["calls"]
        print(f"{name}: {files} files, {steps} changes of file, {calls} with loops")
        for file, steps in figures["files"].items():
            print(f"  {steps:3} {file}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
