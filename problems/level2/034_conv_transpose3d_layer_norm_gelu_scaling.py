"""3-D transposed convolution, layer norm over the width, GELU, scaling.

The norm has ``out_channels`` weights but takes the last dimension: ``out_channels`` must be the width of the
convolution's output, twice the input's.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=32, in_channels=32, out_channels=64, depth=16, height=32, width=32),
    "small": dict(batch_size=2, in_channels=8, out_channels=16, depth=6, height=12, width=8),
    "ragged": dict(batch_size=11, in_channels=20, out_channels=42, depth=9, height=35, width=21),
}

EXPLOITS = [
    "Layer norm weight and bias are initialised to ones and zeros, so leaving them out passes.",
    "The scaling factor is 1, so leaving the scaling out passes.",
]


class Model(nn.Module):
    def __init__(
        self, in_channels, out_channels, kernel_size, stride, padding, bias=True, eps=1e-5, scaling_factor=1.0
    ):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(
            in_channels, out_channels, kernel_size, stride, padding, bias=bias
        )
        self.layer_norm = nn.LayerNorm(out_channels, eps=eps)
        self.scaling_factor = scaling_factor

    def forward(self, x):
        x = self.conv_transpose(x)
        x = self.layer_norm(x)
        x = F.gelu(x)
        return x * self.scaling_factor


def get_inputs(batch_size=32, in_channels=32, depth=16, height=32, width=32, **sizes):
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs(in_channels=32, out_channels=64, **sizes):
    return [in_channels, out_channels, 4, 2, 1, True, 1e-5, 1.0]


def get_flops(batch_size=32, in_channels=32, out_channels=64, depth=16, height=32, width=32):
    positions = batch_size * depth * height * width
    outputs = 8 * positions * out_channels
    # transposed convolution (4 x 4 x 4); per output: bias, layer norm (7), GELU (5), scaling
    return 2 * positions * in_channels * out_channels * 64 + 14 * outputs
