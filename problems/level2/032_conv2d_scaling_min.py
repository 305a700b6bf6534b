"""2-D convolution, scaling, minimum over the channels."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=64, in_channels=64, out_channels=128, height=256, width=256, scale_factor=2.0),
    "small": dict(batch_size=4, in_channels=16, out_channels=32, height=32, width=40, scale_factor=2.0),
    "ragged": dict(batch_size=33, in_channels=60, out_channels=100, height=111, width=141, scale_factor=1.5),
}

CENTRED = 1.0  # by initial weights some units are never the smallest


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, scale_factor):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.scale_factor = scale_factor

    def forward(self, x):
        x = self.conv(x)
        x = x * self.scale_factor
        return torch.min(x, dim=1, keepdim=True)[0]


def get_inputs(batch_size=64, in_channels=64, height=256, width=256, **sizes):
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs(in_channels=64, out_channels=128, scale_factor=2.0, **sizes):
    return [in_channels, out_channels, 3, scale_factor]


def get_flops(batch_size=64, in_channels=64, out_channels=128, height=256, width=256, **sizes):
    outputs = batch_size * out_channels * (height - 2) * (width - 2)
    # convolution (3 x 3); per output: bias, scaling, minimum
    return 2 * outputs * in_channels * 9 + 3 * outputs
