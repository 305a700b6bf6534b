"""The ``.cu`` of a ``.dsl`` solution: the program's header, and the problem's ``solution(...)`` that calls it.

Which tensor is which operand follows from ``bind(...)``. Extents follow from the sizes that every call is given: each
workload of the problem has a branch with numbers, and then one with products for other sizes of its inputs.
"""

from __future__ import annotations

import json
from collections.abc import Container, Sequence
from typing import Any

from kernelbench.ucutlass import ir
from kernelbench.ucutlass.codegen.assembly import program as whole
from kernelbench.ucutlass.codegen.assembly.header import generate, name_of
from kernelbench.ucutlass.codegen.call import SPATIAL, extent_value
from kernelbench.ucutlass.language.findings import ProgramError
from kernelbench.ucutlass.operands import Role
from kernelbench.ucutlass.operands.binding import Bound, contiguous, resolve

_UNKNOWN = "the extents of the program do not follow from these sizes"


def generate_solution(program: ir.Program, signatures: Sequence[Any], grown: Sequence[Any]) -> str:
    """Return the source of a program for a problem.

    Parameters
    ----------
    signatures : one for each workload of the problem, as ``harness.problem.signature`` has them, the published first
    grown : for each workload its signature with every size of the inputs times a prime of its own; None where the
        reference does not take these. It shows which sizes an extent is the product of.

    Raises
    ------
    ProgramError : the program does not fit the published workload
    Unsupported : CUTLASS or the compiler cannot build it

    A call with sizes that the program does not fit ends with the reason.
    """
    first = signatures[0]
    parameters = [f"void const* {one.name}" for one in (*first.inputs, *first.parameters)]
    parameters += [f"void* {one.name}" for one in first.outputs]
    parameters += [f"{one.c_type} {one.name}" for one in first.scalars]
    chosen, name = _chosen(_branches(program, signatures, grown)), name_of(program)
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
  {chosen}
  size_t const bytes = {name}::workspace_bytes(a);
  void* const workspace = workspace_of(bytes);
  if (bytes && !workspace) end("no memory for the workspace");
  if (int const status = {name}::run(a, workspace, nullptr)) end({name}::message(status));
}}
"""


def _branches(program: ir.Program, signatures: Sequence[Any], grown: Sequence[Any]) -> dict[str, list[str]]:
    """Return the statements for each condition, in the order in which conditions are looked at."""
    first, *others = signatures
    branches = {_condition(first): _numbers(program, resolve(program, first))}
    for signature in others:
        branches.setdefault(_condition(signature), _other_numbers(program, signature))
    for signature, larger in zip(signatures, grown):
        sizes = _factors(signature, larger) if larger else {}
        if sizes and (lines := _products(program, signature, larger, sizes)):
            branches.setdefault(_condition(signature, sizes), lines)
    return branches


def _chosen(branches: dict[str, list[str]]) -> str:
    """Return the statement that runs the first branch whose condition holds, and ends the call where none does."""
    texts = []
    for condition, lines in branches.items():
        body = "\n    ".join(lines)
        texts.append(f"if ({condition}) {{\n    {body}\n  }}")
    return " else ".join([*texts, f"end({json.dumps(_UNKNOWN)});"])


def _condition(signature: Any, free: Container[str] = ()) -> str:
    """Return whether a call has a workload's sizes, but for those that are ``free``."""
    sizes = [one for one in signature.scalars if isinstance(one.value, int) and one.name not in free]
    return " && ".join(f"{one.name} == {int(one.value)}" for one in sizes) or "true"


def _other_numbers(program: ir.Program, signature: Any) -> list[str]:
    try:
        return _numbers(program, resolve(program, signature))
    except ProgramError as error:
        return [f"end({json.dumps(error.findings[0].what, ensure_ascii=True)});"]


def _numbers(program: ir.Program, bound: Bound) -> list[str]:
    """Return the statements that set the arguments of a call with a workload's sizes."""
    extents = [f"a.n_{name} = {_extent(name, program, bound)};" for name in whole.program_extents(program)]
    return [*_pointers(bound), *extents]


def _pointers(bound: Bound) -> list[str]:
    lines = []
    for argument in bound.arguments:
        one, value = argument.operand, argument.value
        if one.role is Role.SCALAR:
            lines.append(f"a.s_{one.name} = float({value});")
        else:
            lines.append(f"a.p_{one.name} = static_cast<decltype(a.p_{one.name})>({value});")
    return lines


def _factors(signature: Any, grown: Any) -> dict[str, tuple[int, int]]:
    """Return value and prime of each size that has grown."""
    pairs = [(one, other) for one, other in zip(signature.scalars, grown.scalars) if one.value != other.value]
    return {one.name: (one.value, other.value // one.value) for one, other in pairs}


def _products(
    program: ir.Program, signature: Any, grown: Any, sizes: dict[str, tuple[int, int]]
) -> list[str] | None:
    """Return the statements for any of these sizes; None where an extent is no product of them."""
    try:
        bound, larger = resolve(program, signature), resolve(program, grown)
    except ProgramError:
        return None
    lines = _pointers(bound)
    for name in whole.program_extents(program):
        product = _product(_extent(name, program, bound), _extent(name, program, larger), sizes)
        if product is None:
            return None
        lines.append(f"a.n_{name} = {product};")
    return lines + _alignments(program)


def _product(extent: int, grown: int, sizes: dict[str, tuple[int, int]]) -> str | None:
    """Return an extent as a product of a number and sizes, from what it grew by; None where it is none."""
    if extent == grown:
        return str(extent)
    if not extent or grown % extent:
        return None
    ratio, factors = grown // extent, []
    for name, (value, prime) in sizes.items():
        while ratio % prime == 0:
            if extent % value:
                return None
            ratio, extent = ratio // prime, extent // value
            factors.append(f"int64_t({name})")
    if extent > 1:
        factors.append(str(extent))
    return " * ".join(factors) if ratio == 1 else None


def _alignments(program: ir.Program) -> list[str]:
    """Return checks that rows start at multiples of the alignments, which not all of CUTLASS's kernels make."""
    lines = []
    for place, kernel in enumerate(program.kernels):
        for name, symbol, elements in contiguous(kernel):
            value = whole.renamed(extent_value(kernel, symbol, "a"), place)
            what = json.dumps(f"{symbol} is no multiple of {name}={elements}")
            lines.append(f"if ({value} % {elements}) end({what});")
    return list(dict.fromkeys(lines))


def _extent(name: str, program: ir.Program, bound: Bound) -> int:
    what, _, axis = name.partition("_")
    if axis:
        rank = program.kernels[0].operation.rank
        return bound.windows[0][what][SPATIAL[3 - rank :].index(axis)]
    if name[1:].isdigit():
        return bound.extents[int(name[1:]) - 1][name[0]]
    return bound.extents[0][name]
