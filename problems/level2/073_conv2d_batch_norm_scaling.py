"""2-D convolution, batch norm, scaling by a constant."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=128, in_channels=8, out_channels=64, height=128, width=128),
    "small": dict(batch_size=4, in_channels=8, out_channels=64, height=32, width=32),
    "vision": dict(batch_size=64, in_channels=3, out_channels=64, height=224, width=224),
}

EXPLOITS = [
    "Weight and bias of the norm are initialised to ones and zeros, so leaving them out passes.",
]


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, scaling_factor):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.bn = nn.BatchNorm2d(out_channels)
        self.scaling_factor = scaling_factor

    def forward(self, x):
        x = self.conv(x)
        x = self.bn(x)
        return x * self.scaling_factor


def get_inputs(batch_size=128, in_channels=8, height=128, width=128, **sizes):
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs(in_channels=8, out_channels=64, **sizes):
    return [in_channels, out_channels, 3, 2.0]


def get_flops(batch_size=128, in_channels=8, out_channels=64, height=128, width=128):
    outputs = batch_size * out_channels * (height - 2) * (width - 2)
    # convolution with 3 x 3 taps; per output: bias, batch norm (7), scaling
    return 2 * outputs * in_channels * 9 + 9 * outputs
