"""2-D convolution, group norm, product with a parameter a channel, max pooling, clamp to [0, 1]."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=128, in_channels=8, out_channels=64, num_groups=16, height=128, width=128),
    "small": dict(batch_size=4, in_channels=8, out_channels=64, num_groups=16, height=32, width=32),
    "ragged": dict(batch_size=30, in_channels=7, out_channels=60, num_groups=15, height=129, width=97),
}

EXPLOITS = [
    "Scale and weight of the norm are initialised to ones and its bias to zeros, so leaving them out passes.",
]


class Model(nn.Module):
    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        num_groups,
        scale_shape,
        maxpool_kernel_size,
        clamp_min,
        clamp_max,
    ):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.group_norm = nn.GroupNorm(num_groups, out_channels)
        self.scale = nn.Parameter(torch.ones(scale_shape))
        self.maxpool_kernel_size = maxpool_kernel_size
        self.clamp_min = clamp_min
        self.clamp_max = clamp_max

    def forward(self, x):
        x = self.conv(x)
        x = self.group_norm(x)
        x = x * self.scale
        x = F.max_pool2d(x, self.maxpool_kernel_size)
        return torch.clamp(x, self.clamp_min, self.clamp_max)


def get_inputs(batch_size=128, in_channels=8, height=128, width=128, **sizes):
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs(in_channels=8, out_channels=64, num_groups=16, **sizes):
    return [in_channels, out_channels, 3, num_groups, (out_channels, 1, 1), 4, 0.0, 1.0]


def get_flops(batch_size=128, in_channels=8, out_channels=64, height=128, width=128, **sizes):
    outputs = batch_size * out_channels * (height - 2) * (width - 2)
    pooled = batch_size * out_channels * ((height - 2) // 4) * ((width - 2) // 4)
    # convolution with 3 x 3 taps; per output of it: bias, group norm (7), product;
    # per pooled value: window of 16, clamp (2)
    return 2 * outputs * in_channels * 9 + 9 * outputs + 18 * pooled
