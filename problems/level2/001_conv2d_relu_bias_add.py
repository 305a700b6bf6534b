"""2-D convolution, ReLU, addition of a bias of its own."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=128, in_channels=64, out_channels=128, height=128, width=128),
    "small": dict(batch_size=4, in_channels=16, out_channels=32, height=32, width=40),
    "ragged": dict(batch_size=33, in_channels=60, out_channels=100, height=111, width=141),
}

CENTRED = 1.0  # by initial weights some units are zero for all inputs


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, bias_shape):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x):
        x = self.conv(x)
        x = torch.relu(x)
        return x + self.bias


def get_inputs(batch_size=128, in_channels=64, height=128, width=128, **sizes):
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs(in_channels=64, out_channels=128, **sizes):
    return [in_channels, out_channels, 3, (out_channels, 1, 1)]


def get_flops(batch_size=128, in_channels=64, out_channels=128, height=128, width=128):
    outputs = batch_size * out_channels * (height - 2) * (width - 2)
    # convolution (3 x 3); per output: bias, comparison, second bias
    return 2 * outputs * in_channels * 9 + 3 * outputs
