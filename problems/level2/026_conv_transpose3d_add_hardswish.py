"""3-D transposed convolution, addition of a second input, product with its own hardswish.

The parameter ``bias`` exists but is not used.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=128, in_channels=32, out_channels=64, depth=16, height=16, width=16),
    "small": dict(batch_size=2, in_channels=8, out_channels=16, depth=6, height=12, width=10),
    "ragged": dict(batch_size=27, in_channels=20, out_channels=42, depth=9, height=15, width=21),
}

EXPLOITS = [
    "The sums v stay between -3 and 3 on the published draw, where hardswish clamps nothing: "
    "v * v * (v + 3) / 6 passes.",
]


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, output_padding, bias_shape):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(
            in_channels, out_channels, kernel_size, stride, padding, output_padding
        )
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x, add_input):
        x = self.conv_transpose(x)
        x = x + add_input
        return x * F.hardswish(x)


def get_inputs(batch_size=128, in_channels=32, out_channels=64, depth=16, height=16, width=16):
    return [
        torch.rand(batch_size, in_channels, depth, height, width),
        torch.rand(batch_size, out_channels, 2 * depth, 2 * height, 2 * width),
    ]


def get_init_inputs(in_channels=32, out_channels=64, **sizes):
    return [in_channels, out_channels, 3, 2, 1, 1, (out_channels, 1, 1, 1, 1)]


def get_flops(batch_size=128, in_channels=32, out_channels=64, depth=16, height=16, width=16):
    positions = batch_size * depth * height * width
    outputs = 8 * positions * out_channels
    # transposed convolution (3 x 3 x 3); per output: bias, addition, hardswish (5), product
    return 2 * positions * in_channels * out_channels * 27 + 8 * outputs
