"""3-D transposed convolution, x * sigmoid(x), group norm, hardswish."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=128, in_channels=3, out_channels=16, groups=4, depth=16, height=32, width=32),
    "small": dict(batch_size=4, in_channels=3, out_channels=16, groups=4, depth=8, height=12, width=12),
    "ragged": dict(batch_size=21, in_channels=5, out_channels=24, groups=3, depth=13, height=31, width=37),
}

EXPLOITS = [
    "Weight and bias of the norm are initialised to ones and zeros, so leaving them out passes.",
]


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, groups, eps, bias=True):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(
            in_channels, out_channels, kernel_size, stride, padding, bias=bias
        )
        self.group_norm = nn.GroupNorm(groups, out_channels, eps=eps)

    def forward(self, x):
        x = self.conv_transpose(x)
        x = torch.sigmoid(x) * x
        x = self.group_norm(x)
        return F.hardswish(x)


def get_inputs(batch_size=128, in_channels=3, depth=16, height=32, width=32, **sizes):
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs(in_channels=3, out_channels=16, groups=4, **sizes):
    return [in_channels, out_channels, 3, 2, 1, groups, 1e-5]


def get_flops(batch_size=128, in_channels=3, out_channels=16, depth=16, height=32, width=32, **sizes):
    inputs = batch_size * in_channels * depth * height * width
    outputs = batch_size * out_channels * (2 * depth - 1) * (2 * height - 1) * (2 * width - 1)
    # transposed convolution with 27 taps; per output: bias, sigmoid (4), product, group norm (7),
    # hardswish (5)
    return 2 * inputs * out_channels * 27 + 18 * outputs
