"""Tiles and instructions of CUTLASS 2.x kernels."""

from __future__ import annotations

from kernelbench.ucutlass import ir
from kernelbench.ucutlass.codegen.elements import cpp
from kernelbench.ucutlass.codegen.unsupported import Unsupported
from kernelbench.ucutlass.ir import Arch, DType, Swizzle

# mma.sync shapes of the tensor cores: PTX ISA, "Matrix fragments for mma"
_INSTRUCTIONS = {
    DType.FP16: (16, 8, 16), DType.BF16: (16, 8, 16), DType.TF32: (16, 8, 8), DType.FP64: (8, 8, 4),
    DType.INT8: (16, 8, 32), DType.UINT8: (16, 8, 32), DType.FP8_E4M3: (16, 8, 32), DType.FP8_E5M2: (16, 8, 32),
}  # fmt: skip
_MANY = 128 * 128  # outputs of a tile beyond which eight warps share it


def uses_simt(kernel: ir.Kernel) -> bool:
    """Return whether CUDA cores compute: FP32 has no tensor core of its own."""
    return kernel.dtypes.input is DType.FP32


def instruction(kernel: ir.Kernel) -> tuple[int, int, int]:
    """Return the shape of one instruction; raises Unsupported where there is none."""
    given = kernel.dtypes.input
    if uses_simt(kernel):
        return (1, 1, 1)
    if given not in _INSTRUCTIONS:
        raise Unsupported(f"there is no tensor core instruction for {given}", "use fp16, bf16, tf32, fp64 or int8")
    if given in (DType.FP8_E4M3, DType.FP8_E5M2) and kernel.arch is not Arch.SM89:
        raise Unsupported("FP8 before SM90 needs SM89", "write .with_arch(sm_89) or .with_arch(sm_90a)")
    if given is DType.FP64 and kernel.arch is not Arch.SM80:
        raise Unsupported(f"{kernel.arch} has no FP64 tensor cores", "write .with_arch(sm_80)")
    return _INSTRUCTIONS[given]


def warp(kernel: ir.Kernel) -> tuple[int, int, int]:
    """Return the tile of one warp: two by two warps, and twice as many along the longer side of a large tile."""
    tile = kernel.cta_tile
    m, n = 2, 2
    if tile.m * tile.n > _MANY:
        m, n = (4, 2) if tile.m >= tile.n else (2, 4)
    if uses_simt(kernel) and tile.m * tile.n >= _MANY:
        m, n = 4, 2
    shape = instruction(kernel)
    if tile.m % (m * shape[0]) or tile.n % (n * shape[1]) or tile.k % shape[2]:
        raise Unsupported(
            f"a tile of {tile.m} x {tile.n} x {tile.k} is not divided by {m} x {n} warps with instructions of "
            f"{shape[0]} x {shape[1]} x {shape[2]}",
            "use a tile of 64, 128 or 256 by 64, 128 or 256",
        )
    return tile.m // m, tile.n // n, tile.k


def element(dtype: DType) -> str:
    """Return the type of an operand as the kernel reads it: TF32 has a type of its own."""
    return "cutlass::tfloat32_t" if dtype is DType.TF32 else cpp(dtype)


def types(kernel: ir.Kernel) -> str:
    """Return shapes, class of operator and arithmetic as C++ types."""
    tile = kernel.cta_tile
    lines = [
        f"using {name} = cutlass::gemm::GemmShape<{', '.join(map(str, shape))}>;"
        for name, shape in [
            ("CtaTile", (tile.m, tile.n, tile.k)),
            ("WarpTile", warp(kernel)),
            ("Instruction", instruction(kernel)),
        ]
    ]
    types_ = kernel.dtypes
    kind = "Simt" if uses_simt(kernel) else "TensorOp"
    tag = "Sm89" if types_.input in (DType.FP8_E4M3, DType.FP8_E5M2) else "Sm80"
    operator = "OpMultiplyAddSaturate" if types_.input.is_integer else "OpMultiplyAdd"
    return "\n".join(
        [
            *lines,
            f"using OperatorClass = cutlass::arch::OpClass{kind};",
            f"using ArchTag = cutlass::arch::{tag};",
            f"using MathOperator = cutlass::arch::{operator};",
            f"using ElementAB = {element(types_.input)};",
            f"using ElementAccumulator = {cpp(types_.acc)};",
            "namespace kernel_types { using Accumulator = ElementAccumulator; }",
            f"using ElementD = {cpp(types_.output)};",
        ]
    )


def identity_swizzle(kernel: ir.Kernel) -> int:
    """Return N of ``IdentityN``; 1 where the swizzle is stream-K."""
    swizzle = kernel.swizzle or Swizzle.IDENTITY1
    return 1 if swizzle is Swizzle.STREAM_K else int(swizzle.value.removeprefix("Identity"))
