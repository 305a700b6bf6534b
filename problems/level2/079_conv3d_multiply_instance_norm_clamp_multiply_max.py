"""3-D convolution, product with a parameter, instance norm, clamp, product again, channel maximum."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=128, in_channels=3, out_channels=16, depth=16, height=32, width=32),
    "small": dict(batch_size=4, in_channels=3, out_channels=16, depth=10, height=16, width=16),
    "video": dict(batch_size=8, in_channels=3, out_channels=64, depth=16, height=112, width=112),
}

EVEN = 0.1  # by initial weights channels with a small factor are never the largest


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, multiplier_shape, clamp_min, clamp_max):
        super().__init__()
        self.conv = nn.Conv3d(in_channels, out_channels, kernel_size)
        self.multiplier = nn.Parameter(torch.randn(multiplier_shape))
        self.instance_norm = nn.InstanceNorm3d(out_channels)
        self.clamp_min = clamp_min
        self.clamp_max = clamp_max

    def forward(self, x):
        x = self.conv(x)
        x = x * self.multiplier
        x = self.instance_norm(x)
        x = torch.clamp(x, self.clamp_min, self.clamp_max)
        x = x * self.multiplier
        return torch.max(x, dim=1).values


def get_inputs(batch_size=128, in_channels=3, depth=16, height=32, width=32, **sizes):
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs(in_channels=3, out_channels=16, **sizes):
    return [in_channels, out_channels, 3, (out_channels, 1, 1, 1), -1.0, 1.0]


def get_flops(batch_size=128, in_channels=3, out_channels=16, depth=16, height=32, width=32):
    outputs = batch_size * out_channels * (depth - 2) * (height - 2) * (width - 2)
    # convolution with 27 taps; per output of it: bias, two products, instance norm (5), clamp (2), maximum
    return 2 * outputs * in_channels * 27 + 11 * outputs
