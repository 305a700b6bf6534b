"""Facts about GPUs that a kernel's author wants to know and no bound needs: for prompts.

Limits of a compute capability are those of the CUDA C++ Programming Guide, "Compute Capabilities",
table "Technical Specifications per Compute Capability", which holds for 12.0 where the Blackwell Tuning Guide says
otherwise (32 blocks, 128 KB). Rates are dense and of the tensor cores, in TOP/s, with a
multiply-add as two operations, from NVIDIA's datasheets and architecture papers; where these quote sparse ones,
half of them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Architecture:
    """Limits of the SMs of one compute capability; shared memory in KB of 1,024 bytes."""

    name: str
    blocks_per_sm: int
    threads_per_sm: int
    shared_kb_per_sm: int
    shared_kb_per_block: int  # beyond 48 a kernel has to ask for it
    instructions: str  # of its own, for matrix products and copies
    registers_per_sm: int = 65536  # 32-bit ones; the same since compute capability 5.0, as are the next two
    registers_per_thread: int = 255
    threads_per_block: int = 1024


_WMMA = "`wmma` and `mma.sync`"
ARCHITECTURES = {
    "7.5": Architecture("Turing", 16, 1024, 64, 64, f"{_WMMA} on FP16, INT8 and INT4"),
    "8.0": Architecture("Ampere", 32, 2048, 164, 163, f"{_WMMA} on TF32, BF16, FP16 and INT8, `cp.async`"),
    "8.6": Architecture("Ampere", 16, 1536, 100, 99, f"{_WMMA} on TF32, BF16, FP16 and INT8, `cp.async`"),
    "8.9": Architecture(
        "Ada Lovelace", 24, 1536, 100, 99,
        f"{_WMMA} on TF32, BF16, FP16 and INT8, `mma.sync` on FP8, `cp.async`",
    ),
    "9.0": Architecture(
        "Hopper", 32, 2048, 228, 227,
        f"{_WMMA}, `wgmma` (asynchronous, from shared memory, needs sm_90a), TMA copies, thread block clusters",
    ),
    "10.0": Architecture(
        "Blackwell", 32, 2048, 228, 227,
        f"{_WMMA}, `tcgen05` (asynchronous, with tensor memory, needs sm_100a), TMA copies, thread block clusters",
    ),
    "12.0": Architecture("Blackwell", 24, 1536, 100, 99, f"{_WMMA}, the latter down to FP4, `cp.async`, TMA copies"),
}  # fmt: skip


@dataclass(frozen=True)
class Datasheet:
    """Figures of one product from its data sheet; ``fp8`` is in ``hardware.Limits``. None without such units."""

    capability: str
    memory: str
    memory_gb: int
    int8: float
    int4: float | None = None


# By the names of ``hardware.DEVICES``.
DATASHEETS = {
    # NVIDIA H100 Tensor Core GPU Architecture, table 2 and datasheet
    "h100-sxm": Datasheet("9.0", "HBM3", 80, int8=1979),
    "h100-pcie": Datasheet("9.0", "HBM2e", 80, int8=1513),
    "h200": Datasheet("9.0", "HBM3e", 141, int8=1979),  # NVIDIA H200 datasheet
    # NVIDIA A100 Tensor Core GPU Architecture, table 1
    "a100-sxm": Datasheet("8.0", "HBM2e", 80, int8=624, int4=1248),
    "a100-pcie": Datasheet("8.0", "HBM2e", 80, int8=624, int4=1248),
    "a100-40gb": Datasheet("8.0", "HBM2", 40, int8=624, int4=1248),
    "l40s": Datasheet("8.9", "GDDR6 with ECC", 48, int8=733, int4=733),  # NVIDIA L40S datasheet
    "l4": Datasheet("8.9", "GDDR6 with ECC", 24, int8=242),  # NVIDIA L4 datasheet
    "t4": Datasheet("7.5", "GDDR6 with ECC", 16, int8=130, int4=260),  # NVIDIA T4 datasheet
    # twice and four times the FP16 rate of the same datasheet, as on every GPU of its architecture (GA102)
    "a10g": Datasheet("8.6", "GDDR6 with ECC", 24, int8=140, int4=280),
    # NVIDIA Ada GPU Architecture, appendix A
    "rtx-4090": Datasheet("8.9", "GDDR6X", 24, int8=660.6, int4=1321.2),
    "b200": Datasheet("10.0", "HBM3e", 180, int8=4500),  # NVIDIA HGX B200 datasheet
    # NVIDIA RTX Blackwell GPU Architecture, appendix A
    "rtx-5090": Datasheet("12.0", "GDDR7", 32, int8=838),
}
