"""3-D convolution, hardswish, group norm, mean over the positions."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=1024, in_channels=3, out_channels=16, depth=16, height=32, width=32),
    "small": dict(batch_size=4, in_channels=3, out_channels=16, depth=10, height=16, width=20),
    "ragged": dict(batch_size=101, in_channels=5, out_channels=36, depth=13, height=29, width=37),
}

EXPLOITS = [
    "Group norm weight and bias are initialised to ones and zeros, so leaving them out passes.",
    "The convolution's outputs v stay between -3 and 3 on the published draw, where hardswish clamps "
    "nothing: v * (v + 3) / 6 passes.",
]


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, num_groups=4, bias=True):
        super().__init__()
        self.conv = nn.Conv3d(in_channels, out_channels, kernel_size, bias=bias)
        self.group_norm = nn.GroupNorm(num_groups, out_channels)

    def forward(self, x):
        x = self.conv(x)
        x = F.hardswish(x)
        x = self.group_norm(x)
        return torch.mean(x, dim=(2, 3, 4))


def get_inputs(batch_size=1024, in_channels=3, depth=16, height=32, width=32, **sizes):
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs(in_channels=3, out_channels=16, **sizes):
    return [in_channels, out_channels, 4]


def get_flops(batch_size=1024, in_channels=3, out_channels=16, depth=16, height=32, width=32):
    outputs = batch_size * out_channels * (depth - 3) * (height - 3) * (width - 3)
    # convolution (4 x 4 x 4); per output: bias, hardswish (5), group norm (7), mean
    return 2 * outputs * in_channels * 64 + 14 * outputs
