""".py solutions: import once without a GPU, so that the extensions they build are in the cache.

A solution that uses no ``torch.utils.cpp_extension`` has nothing to build; its
syntax is checked and that is all. An import that fails for another reason than
the compiler (it may need the device) is left to the worker to report.
"""

from __future__ import annotations

import ast

from harness.build.artefact import Artefact, BuildContext
from harness.build.cache import Cache, key_of
from harness.build.extension import ExtensionBuilder
from harness.result import CandidateFailure, Status
from harness.solution import NOT_PYTHON, Solution, uses_extensions

_FINAL = (Status.BUILD_ERROR, Status.TIMEOUT, Status.OUT_OF_MEMORY)


def build(solution: Solution, context: BuildContext) -> Artefact:
    source = solution.path.read_bytes()
    try:
        tree = ast.parse(source, solution.path.name)
    except NOT_PYTHON as error:
        raise CandidateFailure(Status.BUILD_ERROR, _syntax_message(error, solution)) from None
    env = {}
    if solution.language == "triton":  # compiles in the call, for the device
        key = key_of("triton", solution.sha256, context.torch_version, str(context.arch))
        env["TRITON_CACHE_DIR"] = str(Cache().private_folder(key))
    if not uses_extensions(tree):
        return Artefact(env=env)
    builder = ExtensionBuilder(solution, context)
    note = _import_once(solution, builder)
    cached = builder.reused > 0 and not builder.compiled
    return Artefact(env=env, cached=cached, note=note, keys=tuple(builder.keys))


def _import_once(solution: Solution, builder: ExtensionBuilder) -> str:
    context = builder.context
    hidden = {"CUDA_VISIBLE_DEVICES": ""}
    with context.worker(solution.root, env=hidden, build=builder) as worker:
        try:
            worker.request({"op": "import", "solution": str(solution.path)}, context.timeout_s)
        except CandidateFailure as failure:
            if failure.status in _FINAL:
                raise
            return f"the build ended early: {failure.message.splitlines()[0]}"
    return ""


def _syntax_message(error: Exception, solution: Solution) -> str:
    if not isinstance(error, SyntaxError):
        return f"{solution.path.name} is not Python source: {str(error) or 'nested too deep'}"
    line = (error.text or "").rstrip()
    return f"SyntaxError: {error.msg} ({solution.path.name}, line {error.lineno})" + (f"\n    {line}" if line else "")
