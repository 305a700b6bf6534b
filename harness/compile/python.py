""".py solutions: import once without a GPU, so that the extensions they build are in the cache.

A solution that uses no ``torch.utils.cpp_extension`` has nothing to build; its
syntax is checked and that is all. An import that fails for another reason than
the compiler (it may need the device) is left to the worker to report.
"""

from __future__ import annotations

from typing import Any

from harness.compile.artefact import Artefact, BuildContext, ToolchainError
from harness.compile.cache import Cache, key_of
from harness.compile.extension.build import ExtensionBuilder
from harness.isolated_call import ApartError, TooMuch, apart
from harness.result import CandidateFailure, Status, first_line
from harness.solution.discover import Solution
from harness.solution.languages import languages, missing
from harness.solution.visible_files import own_files

_FINAL = (Status.BUILD_ERROR, Status.TIMEOUT, Status.OUT_OF_MEMORY)


def build(solution: Solution, context: BuildContext) -> Artefact:
    """Prepare a Python solution: build the extensions that it makes when it is imported."""
    facts = _facts(solution)
    env = _private_caches(solution, context)
    if not facts["builds"]:
        return Artefact(env=env)
    builder = ExtensionBuilder(solution, context)
    note = _import_once(solution, builder)
    cached = builder.reused > 0 and not builder.compiled
    return Artefact(env=env, cached=cached, note=note, keys=tuple(builder.keys))


def runs_when_built(solution: Solution) -> bool:
    """Return whether a solution's own code runs when it is built."""
    try:
        return solution.kind == "py" and _facts(solution)["builds"]
    except CandidateFailure:
        return False


def _private_caches(solution: Solution, context: BuildContext) -> dict[str, str]:
    """Folders for what a language compiles in the call, for the device; raise ToolchainError where it is missing."""
    known = languages().get(solution.language)
    if known is None:
        return {}
    if lacking := missing(known.name):
        raise ToolchainError(lacking)
    parts = (known.name, known.installed(), solution.sha256, solution.helpers, context.torch_version, str(context.arch))
    return {name: str(Cache().private_folder(key_of(name, *parts))) for name in known.caches}


def _facts(solution: Solution) -> dict[str, Any]:
    """Return ``source_facts.python``; raise CandidateFailure where the source is no Python, or too much to read."""
    try:
        facts = apart("harness.solution.source_facts:python", str(solution.path), str(solution.root))
    except TooMuch as much:
        raise CandidateFailure(Status.BUILD_ERROR, f"to parse {solution.path.name} takes {much}") from None
    except ApartError as error:
        last = str(error).strip().splitlines()[-1]
        raise CandidateFailure(Status.BUILD_ERROR, f"{solution.path.name} cannot be read: {last}") from None
    if facts["error"]:
        raise CandidateFailure(Status.BUILD_ERROR, facts["error"])
    return facts


def _import_once(solution: Solution, builder: ExtensionBuilder) -> str:
    context = builder.context
    hidden = {"CUDA_VISIBLE_DEVICES": ""}
    try:
        with context.worker(*own_files(solution), env=hidden, build=builder) as worker:
            worker.request({"op": "import", "solution": str(solution.path)}, context.timeout_s)
    except CandidateFailure as failure:
        if failure.status in _FINAL or failure.killed_by:
            raise
        return f"the build ended early: {first_line(failure.message)}"
    return ""
