"""2-D convolution, minimum with a constant, addition of a bias of its own, scaling."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(
        batch_size=128, in_channels=64, out_channels=128, height=128, width=128, constant_value=0.5,
        scaling_factor=2.0
    ),
    "small": dict(
        batch_size=4, in_channels=16, out_channels=32, height=32, width=40, constant_value=0.5,
        scaling_factor=2.0
    ),
    "ragged": dict(
        batch_size=33, in_channels=60, out_channels=100, height=111, width=141, constant_value=0.25,
        scaling_factor=3.0
    ),
}


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, constant_value, bias_shape, scaling_factor):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.constant_value = constant_value
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scaling_factor = scaling_factor

    def forward(self, x):
        x = self.conv(x)
        x = torch.clamp(x, max=self.constant_value)
        x = x + self.bias
        return x * self.scaling_factor


def get_inputs(batch_size=128, in_channels=64, height=128, width=128, **sizes):
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs(in_channels=64, out_channels=128, constant_value=0.5, scaling_factor=2.0, **sizes):
    return [in_channels, out_channels, 3, constant_value, (out_channels, 1, 1), scaling_factor]


def get_flops(batch_size=128, in_channels=64, out_channels=128, height=128, width=128, **sizes):
    outputs = batch_size * out_channels * (height - 2) * (width - 2)
    # convolution (3 x 3); per output: bias, comparison, second bias, scaling
    return 2 * outputs * in_channels * 9 + 4 * outputs
