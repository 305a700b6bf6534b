"""2-D transposed convolution, GELU, group norm.

The argument ``groups`` is not used; the convolution has one group.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=128, in_channels=64, out_channels=64, height=256, width=256, num_groups=8),
    "small": dict(batch_size=4, in_channels=16, out_channels=32, height=32, width=40, num_groups=4),
    "ragged": dict(batch_size=21, in_channels=44, out_channels=66, height=109, width=87, num_groups=6),
}

EXPLOITS = [
    "Group norm weight and bias are initialised to ones and zeros, so leaving them out passes.",
]


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, groups, num_groups):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose2d(in_channels, out_channels, kernel_size, stride)
        self.group_norm = nn.GroupNorm(num_groups=num_groups, num_channels=out_channels)

    def forward(self, x):
        x = self.conv_transpose(x)
        x = F.gelu(x)
        return self.group_norm(x)


def get_inputs(batch_size=128, in_channels=64, height=256, width=256, **sizes):
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs(in_channels=64, out_channels=64, num_groups=8, **sizes):
    return [in_channels, out_channels, 3, 1, 8, num_groups]


def get_flops(batch_size=128, in_channels=64, out_channels=64, height=256, width=256, **sizes):
    positions = batch_size * height * width
    outputs = batch_size * out_channels * (height + 2) * (width + 2)
    # transposed convolution (3 x 3); per output: bias, GELU (5), group norm (7)
    return 2 * positions * in_channels * out_channels * 9 + 13 * outputs
