"""Math modes: PyTorch's documented FP32 defaults, the same everywhere."""

from __future__ import annotations

MATH_MODES = {"matmul_fp32": "ieee", "cudnn_fp32": "tf32", "cudnn_benchmark": "off"}


def pin_math_modes() -> dict[str, str]:
    """Set them in this process; returns them for the record."""
    import torch  # what is pinned is asked for without it

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = False
    return dict(MATH_MODES)
