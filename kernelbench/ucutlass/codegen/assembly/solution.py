"""The ``.cu`` of a ``.dsl`` solution: the program's header, and the problem's ``solution(...)`` that calls it.

Which tensor is which operand follows from ``bind(...)``; extents are numbers, one branch for each workload of the
problem, told apart by the sizes that every call is given.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from kernelbench.ucutlass import ir
from kernelbench.ucutlass.codegen.assembly import program as whole
from kernelbench.ucutlass.codegen.assembly.header import generate, name_of
from kernelbench.ucutlass.codegen.call import SPATIAL
from kernelbench.ucutlass.language.findings import ProgramError
from kernelbench.ucutlass.operands import Role
from kernelbench.ucutlass.operands.binding import Bound, resolve


def generate_solution(program: ir.Program, signatures: Sequence[Any]) -> str:
    """Return the source; ``signatures`` are of the problem's workloads, as ``harness.problem.signature`` has them.

    Raises ProgramError where the program does not fit the first, which is the published one, and Unsupported. A call
    with the sizes of another one that it does not fit ends with the reason.
    """
    first = signatures[0]
    parameters = [f"void const* {one.name}" for one in (*first.inputs, *first.parameters)]
    parameters += [f"void* {one.name}" for one in first.outputs]
    parameters += [f"{one.c_type} {one.name}" for one in first.scalars]
    branches = [_branch(program, first, resolve(program, first))]
    branches += [_other_branch(program, signature) for signature in signatures[1:]]
    name = name_of(program)
    body = "\n".join(branches)
    return f"""\
#define UCUTLASS_NO_C_INTERFACE
{generate(program)}
#include <cstdio>
#include <cstdlib>

namespace {{
// Grown in the first call, which is not timed.
void* workspace_of(size_t bytes) {{
  static void* workspace = nullptr;
  static size_t size = 0;
  if (bytes > size) {{
    cudaFree(workspace);
    if (cudaMalloc(&workspace, bytes) != cudaSuccess) return nullptr;
    size = bytes;
  }}
  return workspace;
}}

void end(char const* message) {{
  std::fprintf(stderr, "{name}: %s\\n", message);
  std::abort();
}}
}}

extern "C" void solution({", ".join(parameters)}) {{
  {name}::Arguments a;
{body}
  size_t const bytes = {name}::workspace_bytes(a);
  void* const workspace = workspace_of(bytes);
  if (bytes && !workspace) end("no memory for the workspace");
  if (int const status = {name}::run(a, workspace, nullptr)) end({name}::message(status));
}}
"""


def _other_branch(program: ir.Program, signature: Any) -> str:
    try:
        return _branch(program, signature, resolve(program, signature))
    except ProgramError as error:
        reason = json.dumps(error.findings[0].what, ensure_ascii=True)
        return f"  if ({_condition(signature)}) end({reason});"


def _condition(signature: Any) -> str:
    sizes = [one for one in signature.scalars if isinstance(one.value, int)]
    return " && ".join(f"{one.name} == {int(one.value)}" for one in sizes) or "true"


def _branch(program: ir.Program, signature: Any, bound: Bound) -> str:
    """Return the statements that set the arguments where a call has this workload's sizes."""
    lines = []
    for argument in bound.arguments:
        one, value = argument.operand, argument.value
        if one.role is Role.SCALAR:
            lines.append(f"a.s_{one.name} = float({value});")
        else:
            lines.append(f"a.p_{one.name} = static_cast<decltype(a.p_{one.name})>({value});")
    for name in whole.program_extents(program):
        lines.append(f"a.n_{name} = {_extent(name, program, bound)};")
    body = "\n    ".join(lines)
    return f"  if ({_condition(signature)}) {{\n    {body}\n  }}"


def _extent(name: str, program: ir.Program, bound: Bound) -> int:
    what, _, axis = name.partition("_")
    if axis:
        rank = program.kernels[0].operation.rank
        return bound.windows[0][what][SPATIAL[3 - rank :].index(axis)]
    if name[1:].isdigit():
        return bound.extents[int(name[1:]) - 1][name[0]]
    return bound.extents[0][name]
