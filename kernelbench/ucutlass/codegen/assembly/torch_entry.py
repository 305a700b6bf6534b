"""``kernel`` and ``kernel_ex`` for PyTorch: tensors in, the result out, on the current stream."""

from __future__ import annotations

from kernelbench.ucutlass import ir
from kernelbench.ucutlass.codegen.assembly import program as whole
from kernelbench.ucutlass.codegen.elements import torch_scalar
from kernelbench.ucutlass.operands import Operand, Role, main_output, operands

_STEPS = ("stride", "padding", "dilation")


def generate(program: ir.Program, name: str) -> str:
    """Return the functions, for the end of the header.

    ``kernel`` takes the inputs, tensors that the epilogue stores to, scalars, and for a convolution its steps;
    ``kernel_ex`` takes alpha, beta and a stream as well.
    """
    names = [one.name for one in operands(program)]
    result = main_output(program.kernels[-1])
    parameters = [_parameter(one) for one in operands(program) if one.name != result]
    steps = [extent for extent in whole.program_extents(program) if extent.partition("_")[0] in _STEPS]
    steps_given = [f"int64_t {step} = {0 if step.startswith('padding') else 1}" for step in steps]
    plain = ", ".join([*parameters, *steps_given])
    passed = ", ".join([*(f"in_{one}" for one in names if one != result), "a.alpha", "a.beta", "nullptr", *steps])
    extended = ", ".join([*parameters, "double alpha", "double beta", "void* stream", *steps_given])
    return f"""\
#if defined(TORCH_EXTENSION_NAME) || defined(UCUTLASS_TORCH)
#include <ATen/ATen.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/cuda/CUDAGuard.h>
namespace {name} {{
// alpha and beta as in D = alpha * A * B + beta * C; a null stream stands for PyTorch's current one.
inline at::Tensor kernel_ex({extended}) {{
{_body(program, result, steps)}
}}
inline at::Tensor kernel({plain}) {{
  Arguments const a;
  return kernel_ex({passed});
}}
}}
#endif"""


def _parameter(one: Operand) -> str:
    return f"double in_{one.name}" if one.role is Role.SCALAR else f"at::Tensor const& in_{one.name}"


def _body(program: ir.Program, result: str, steps: list[str]) -> str:
    tensors = whole.tensors(program)
    given = [tensor for tensor in tensors if tensor.operand.name != result]
    made = next(tensor for tensor in tensors if tensor.operand.name == result)
    lines = ["Arguments a;"]
    lines += [f"a.n_{step} = {step};" for step in steps]
    known = set(steps)
    for tensor in given:
        one = tensor.operand
        lines.append(
            f'TORCH_CHECK(in_{one.name}.is_cuda() && in_{one.name}.is_contiguous() && in_{one.name}.dim() == '
            f"{len(one.extents)} && in_{one.name}.scalar_type() == {torch_scalar(one.dtype)}, "
            f'"{one.name} must be a contiguous CUDA tensor of {len(one.extents)} dimensions and type {one.dtype}");'
        )
        lines += _learn(program, tensor, known)
    lines += _inverse(program, known)
    for tensor in given:
        one = tensor.operand
        for axis, value in enumerate(tensor.extents):
            lines.append(
                f'TORCH_CHECK(in_{one.name}.size({axis}) == {value}, "{one.name} has ", in_{one.name}.size({axis}), '
                f'" elements in dimension {axis}, expected ", {value});'
            )
        lines.append(f"a.p_{one.name} = static_cast<decltype(a.p_{one.name})>(in_{one.name}.data_ptr());")
    first = f"in_{given[0].operand.name}"
    shape = ", ".join(made.extents)
    lines += [f"a.s_{one.name} = float(in_{one.name});" for one in whole.scalars(program)]
    lines += [
        "a.alpha = alpha;",
        "a.beta = beta;",
        f"c10::cuda::CUDAGuard const guard({first}.device());",
        f"auto result = at::empty({{{shape}}}, {first}.options().dtype({torch_scalar(made.operand.dtype)}));",
        f"a.p_{result} = static_cast<decltype(a.p_{result})>(result.data_ptr());",
        f"auto const workspace = at::empty({{int64_t(workspace_bytes(a))}}, {first}.options().dtype(at::kByte));",
        "auto const on = stream ? static_cast<cudaStream_t>(stream) : c10::cuda::getCurrentCUDAStream().stream();",
        "int const status = run(a, workspace.data_ptr(), on);",
        'TORCH_CHECK(status == 0, "ucutlass: ", message(status));',
        "return result;",
    ]
    return "\n".join(f"  {line}" for line in lines)


def _learn(program: ir.Program, tensor: whole.Tensor, known: set[str]) -> list[str]:
    """Return the statements that take extents from the first tensor that has them."""
    lines = []
    for axis, value in enumerate(tensor.extents):
        name = value.removeprefix("a.n_")
        if name == value or not name.isidentifier() or name in known:
            continue
        known.add(name)
        lines.append(f"a.n_{name} = in_{tensor.operand.name}.size({axis});")
    groups = getattr(program.kernels[0].operation, "groups", 1)
    if groups > 1 and tensor.operand.name == "filter" and "C" not in known:
        known.add("C")
        lines.append(f"a.n_C = in_filter.size({len(tensor.extents) - 1}) * {groups};")
    return lines


def _inverse(program: ir.Program, known: set[str]) -> list[str]:
    """Return the statements that find extents which no input has: a data gradient's, without output padding."""
    kernel = program.kernels[0]
    lines = []
    if not kernel.is_gemm:
        rank = kernel.operation.rank
        for axis, extent, size in zip("dhw"[3 - rank :], ("D", "H", "W")[3 - rank :], kernel.operation.kernel):
            if extent not in known:
                place = 1 + ("D", "H", "W")[3 - rank :].index(extent)
                lines.append(
                    f"a.n_{extent} = (in_output.size({place}) - 1) * a.n_stride_{axis} - 2 * a.n_padding_{axis} + "
                    f"a.n_dilation_{axis} * {size - 1} + 1;"
                )
    elif "E" in whole.program_extents(program) and "E" not in known:
        lines.append("a.n_E = in_B.size(0);")
    return lines
