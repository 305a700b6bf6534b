"""Starter files and descriptions of problems, derived from the problem."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path

from harness.compile.toolchain import host_compiler, nvcc
from harness.problem.inputs import DTYPES
from harness.problem.module import FACTS, Workload
from harness.problem.signature import C_TYPES, Signature, derive_signature
from harness.sol.bounds import analyse
from kernelbench.api import load_problem

_CUDA_HEADERS = {
    "__half": "<cuda_fp16.h>", "__half2": "<cuda_fp16.h>", "__nv_bfloat16": "<cuda_bf16.h>",
    "__nv_fp8_e4m3": "<cuda_fp8.h>", "__nv_fp8_e5m2": "<cuda_fp8.h>",
}  # fmt: skip
_HEADERS = {"std::complex<float>": "<complex>", "std::complex<double>": "<complex>"}

_FUNCTIONS = {"get_inputs", "get_init_inputs", "get_flops", "get_bytes"}


def source(problem: str, kind: str, precision: str = "fp32", root: Path | None = None) -> str:
    """A starter of ``kind`` (``py``, ``cu`` or ``cpp``) that builds as it is and computes nothing yet.

    Raises ValueError or ProblemError for a problem that there is not, and
    ValueError for a type that host C++ has no name for.
    """
    return of(load_problem(problem, root).workload("full"), kind, precision)


def kind_for(device_type: str, precision: str = "fp32") -> tuple[str, str]:
    """The kind of starter that builds and runs on this machine's device, and why it is that one."""
    if device_type == "cuda" and nvcc():
        return "cu", "there is a GPU"
    if device_type == "cuda":
        return "py", "there is a GPU and no nvcc"
    if precision != "fp32" or not host_compiler():
        return "py", "there is no GPU and no C++ compiler" if precision == "fp32" else "there is no GPU"
    return "cpp", "there is no GPU"


def of(workload: Workload, kind: str, precision: str = "fp32") -> str:
    """The starter for one workload of a loaded problem; raises as ``source``."""
    if kind == "py":
        return _python(workload)
    signature = derive_signature(workload, DTYPES[precision])
    if kind == "cpp" and any(C_TYPES[t.dtype] in _CUDA_HEADERS for t in _tensors(signature)):
        raise ValueError(f"host C++ has no standard type for {precision}; use --kind cu or --kind py")
    return _native(workload, signature, kind)


def description(
    problem: str, workload_name: str | None = None, root: Path | None = None, shown: Callable[[str], str] | None = None
) -> str:
    """Source, workloads, work and signature of a problem, as text.

    ``shown`` makes of its module what an agent gets to see; without it all is told, also what helps to cheat.
    """
    loaded = load_problem(problem, root)
    workload = loaded.workload(workload_name or next(iter(loaded.workloads)))
    signature = derive_signature(workload)
    work = _work(workload)
    groups = {"input": signature.inputs, "parameter": signature.parameters, "output": signature.outputs}
    text = loaded.path.read_text(encoding="utf-8")
    tensors = [
        f"  {role:<10} {t.name:<24} {str(t.dtype).removeprefix('torch.'):<9} {list(t.shape)}"
        for role, group in groups.items()
        for t in group
    ]
    sizes = [f"  {name:<10} {values}" for name, values in loaded.workloads.items()]
    parts = [
        f"{loaded.id} {loaded.name}",
        (shown(text) if shown else text).rstrip(),
        "\n".join(["Workloads:", *sizes]),
        "\n".join([f"Workload {workload.name}:", *(f"  {line}" for line in work), *tensors]),
        "Signature of a .cu or .cpp solution:\n\n" + signature.declaration() + ";",
    ]
    exploits = getattr(loaded.module, "EXPLOITS", None)
    if exploits and not shown:
        parts.append("\n".join(["Shortcuts that the published inputs allow:", *(f"  - {line}" for line in exploits)]))
    return "\n\n".join(parts)


def _work(workload: Workload) -> list[str]:
    """FLOPs, least traffic and intensity; what the outputs do not depend on is not part of it."""
    direct = analyse(workload).direct
    lines = [f"FLOPs   {round(direct.flops):,}", f"bytes   {round(direct.bytes):,}"]
    if direct.bytes:
        lines.append(f"FLOPs/byte   {direct.flops / direct.bytes:.2f}")
    if workload.flops is not None and workload.flops != direct.flops:
        lines[0] += f" ({workload.flops:,} as published: some results are discarded)"
    return lines


def _native(workload: Workload, signature: Signature, kind: str) -> str:
    problem = workload.problem
    known = _HEADERS | (_CUDA_HEADERS if kind == "cu" else {})
    used = {C_TYPES[t.dtype] for t in _tensors(signature)}
    headers = ["<cstddef>", "<cstdint>", *dict.fromkeys(known[c_type] for c_type in sorted(used & known.keys()))]
    shapes = "\n".join(f"//   {t.name:<20} {list(t.shape)}" for t in _tensors(signature))
    where = "device" if kind == "cu" else "host"
    todo = (
        "    // Launch your kernels on the default stream; there is no need to synchronise."
        if kind == "cu"
        else "    // Fill the output."
    )
    return (
        f"// kb: problem={problem.id}\n"
        f"// {problem.summary}\n"
        f"//\n"
        f"// All pointers are contiguous {where} memory. Shapes of the workload '{workload.name}':\n{shapes}\n\n"
        + "".join(f"#include {header}\n" for header in headers)
        + f"\n{signature.declaration()} {{\n{todo}\n}}\n"
    )


def _python(workload: Workload) -> str:
    """The reference renamed: a correct solution to start from."""
    problem = workload.problem
    text = problem.path.read_text(encoding="utf-8")
    parts = []
    for node in ast.parse(text).body:
        name = getattr(node, "name", None) or getattr(getattr(node, "targets", [None])[0], "id", "")
        docstring = isinstance(node, ast.Expr)
        if docstring or name in FACTS | _FUNCTIONS:
            continue
        decorators = [f"@{ast.get_source_segment(text, one)}\n" for one in getattr(node, "decorator_list", [])]
        part = "".join(decorators) + ast.get_source_segment(text, node)
        if name == "Model":
            part = re.sub(r"\bModel\b", "ModelNew", part)
        imports = isinstance(node, (ast.Import, ast.ImportFrom))
        parts.append(part if imports else f"\n\n{part}")
    return f"# kb: problem={problem.id}\n# {problem.summary}\n\n" + "\n".join(parts) + "\n"


def _tensors(signature: Signature):
    return (*signature.inputs, *signature.parameters, *signature.outputs)
