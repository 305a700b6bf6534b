"""3-D transposed convolution without bias, ReLU, group norm."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=16, in_channels=64, out_channels=128, groups=8, depth=32, height=32, width=32),
    "small": dict(batch_size=2, in_channels=16, out_channels=32, groups=8, depth=8, height=10, width=10),
    "ragged": dict(batch_size=5, in_channels=48, out_channels=99, groups=9, depth=17, height=23, width=29),
}

EXPLOITS = [
    "Weight and bias of the norm are initialised to ones and zeros, so leaving them out passes.",
]


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, groups, bias=False):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(in_channels, out_channels, kernel_size, bias=bias)
        self.group_norm = nn.GroupNorm(groups, out_channels)

    def forward(self, x):
        x = self.conv_transpose(x)
        x = torch.relu(x)
        return self.group_norm(x)


def get_inputs(batch_size=16, in_channels=64, depth=32, height=32, width=32, **sizes):
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs(in_channels=64, out_channels=128, groups=8, **sizes):
    return [in_channels, out_channels, 3, groups, False]


def get_flops(batch_size=16, in_channels=64, out_channels=128, depth=32, height=32, width=32, **sizes):
    inputs = batch_size * in_channels * depth * height * width
    outputs = batch_size * out_channels * (depth + 2) * (height + 2) * (width + 2)
    # transposed convolution with 27 taps; per output: comparison, group norm (7)
    return 2 * inputs * out_channels * 27 + 8 * outputs
