""".py solutions: import once without a GPU, so that the extensions they build are in the cache.

A solution that uses no ``torch.utils.cpp_extension`` has nothing to build; its
syntax is checked and that is all. An import that fails for another reason than
the compiler (it may need the device) is left to the worker to report.
"""

from __future__ import annotations

import ast

from harness.build.artefact import Artefact, BuildContext
from harness.build.cache import entry, key_of
from harness.build.toolchain import host_compiler, nvcc
from harness.result import CandidateFailure, Status
from harness.solution import Solution, uses_extensions

_FINAL = (Status.BUILD_ERROR, Status.TIMEOUT, Status.OUT_OF_MEMORY)


def build(solution: Solution, context: BuildContext) -> Artefact:
    source = solution.path.read_bytes()
    try:
        tree = ast.parse(source, solution.path.name)
    except (SyntaxError, ValueError) as error:
        raise CandidateFailure(Status.BUILD_ERROR, _syntax_message(error, solution)) from None
    compilers = [c for c in (nvcc(), host_compiler()) if c]
    key = key_of(
        "python", solution.sha256, str(solution.path.parent), context.torch_version, str(context.arch),
        *(f"{c.path} {c.version}" for c in compilers),
    )  # fmt: skip
    env = {}
    with entry(key) as (folder, cached):
        env["TORCH_EXTENSIONS_DIR"] = str(folder / "torch_extensions")
        env["TRITON_CACHE_DIR"] = str(folder / "triton")
        env["MAX_JOBS"] = str(context.jobs)
        if context.arch:
            env["TORCH_CUDA_ARCH_LIST"] = context.arch
        note = ""
        if not cached and uses_extensions(tree):
            note = _import_once(solution, env, context)
        for lock in folder.glob("torch_extensions/*/lock"):
            lock.unlink()  # left by a killed build; torch would wait for it for ever
    return Artefact(env=env, cached=cached, note=note)


def _import_once(solution: Solution, env: dict[str, str], context: BuildContext) -> str:
    hidden = {"CUDA_VISIBLE_DEVICES": ""}
    with context.server.fork(env | hidden, context.memory_bytes) as worker:
        try:
            worker.request({"op": "import", "solution": str(solution.path)}, context.timeout_s)
        except CandidateFailure as failure:
            if failure.status in _FINAL:
                raise
            return f"the build ended early: {failure.message.splitlines()[0]}"
    return ""


def _syntax_message(error: SyntaxError | ValueError, solution: Solution) -> str:
    if not isinstance(error, SyntaxError):
        return f"{solution.path.name} is not Python source: {error}"
    line = (error.text or "").rstrip()
    return f"SyntaxError: {error.msg} ({solution.path.name}, line {error.lineno})" + (f"\n    {line}" if line else "")
