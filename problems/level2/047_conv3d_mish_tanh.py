"""3-D convolution, Mish, tanh."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=16, in_channels=32, out_channels=64, depth=32, height=64, width=64),
    "small": dict(batch_size=2, in_channels=8, out_channels=16, depth=10, height=16, width=20),
    "ragged": dict(batch_size=7, in_channels=28, out_channels=50, depth=19, height=45, width=53),
}


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0):
        super().__init__()
        self.conv = nn.Conv3d(in_channels, out_channels, kernel_size, stride, padding)

    def forward(self, x):
        x = self.conv(x)
        x = F.mish(x)
        return torch.tanh(x)


def get_inputs(batch_size=16, in_channels=32, depth=32, height=64, width=64, **sizes):
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs(in_channels=32, out_channels=64, **sizes):
    return [in_channels, out_channels, 3]


def get_flops(batch_size=16, in_channels=32, out_channels=64, depth=32, height=64, width=64):
    outputs = batch_size * out_channels * (depth - 2) * (height - 2) * (width - 2)
    # convolution (3 x 3 x 3); per output: bias, Mish (5), tanh
    return 2 * outputs * in_channels * 27 + 7 * outputs
