"""Operands of a program and `bind(...)`: names, and values that they can have.

Shapes are checked where a problem is known.
"""

from collections.abc import Iterator

from kernelbench.ucutlass import ir
from kernelbench.ucutlass.operands import Role, operands, window_arguments
from kernelbench.ucutlass.rules.registry import Breach, Subject, rule


def _is_typed(program: ir.Program) -> bool:
    return all(kernel.dtypes and (kernel.layout or not kernel.is_gemm) for kernel in program.kernels)


@rule("bind-operand", "what is bound must be an operand of the program", Subject.PROGRAM)
def _operand(program: ir.Program) -> Iterator[Breach]:
    if not _is_typed(program):
        return
    names = [operand.name for operand in operands(program)]
    further = list(window_arguments(program))
    for bound in program.bindings:
        if bound.name not in names + further:
            window = f", and {', '.join(further[:3])}" if further else ""
            yield f"{bound.name} is no operand", f"bind {', '.join(names)}{window}", bound.at


@rule("operand-unique", "operands of a second kernel have a 2 after their name, and each is an argument of its own",
      Subject.PROGRAM)  # fmt: skip
def _unique(program: ir.Program) -> Iterator[Breach]:
    if not _is_typed(program):
        return
    taken = set(window_arguments(program))
    for operand in operands(program):
        if operand.name in taken:
            yield f"two arguments have the name {operand.name}", "choose another name in the epilogue", \
                program.kernels[operand.kernel].at  # fmt: skip
        taken.add(operand.name)


@rule("bind-value", "a tensor is bound to a tensor's name, a number to a number or a scalar's name", Subject.PROGRAM)
def _value(program: ir.Program) -> Iterator[Breach]:
    if not _is_typed(program):
        return
    tensors = {operand.name for operand in operands(program) if operand.role is not Role.SCALAR}
    windows = window_arguments(program)
    for bound in program.bindings:
        if bound.name in tensors and not isinstance(bound.value, str):
            yield f"{bound.name}={bound.value}", f"write {bound.name}=NAME, with the name of a tensor", bound.at
        if bound.name in windows and not isinstance(bound.value, str):
            least = 0 if bound.name.startswith("padding") else 1
            if not isinstance(bound.value, int) or bound.value < least:
                yield f"{bound.name}={bound.value}", f"write an integer from {least} on", bound.at
