"""2-D convolution, instance norm without weight and bias, division by a constant."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=128, in_channels=64, out_channels=128, height=128, width=128, divide_by=2.0),
    "small": dict(batch_size=4, in_channels=16, out_channels=32, height=32, width=40, divide_by=2.0),
    "vision": dict(batch_size=32, in_channels=64, out_channels=128, height=224, width=224, divide_by=2.0),
}


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, divide_by):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.instance_norm = nn.InstanceNorm2d(out_channels)
        self.divide_by = divide_by

    def forward(self, x):
        x = self.conv(x)
        x = self.instance_norm(x)
        return x / self.divide_by


def get_inputs(batch_size=128, in_channels=64, height=128, width=128, **sizes):
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs(in_channels=64, out_channels=128, divide_by=2.0, **sizes):
    return [in_channels, out_channels, 3, divide_by]


def get_flops(batch_size=128, in_channels=64, out_channels=128, height=128, width=128, **sizes):
    outputs = batch_size * out_channels * (height - 2) * (width - 2)
    # convolution (3 x 3); per output: bias, instance norm (5), division
    return 2 * outputs * in_channels * 9 + 7 * outputs
