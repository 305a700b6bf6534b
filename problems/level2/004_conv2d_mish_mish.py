"""2-D convolution, Mish twice."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=64, in_channels=64, out_channels=128, height=256, width=256),
    "small": dict(batch_size=4, in_channels=16, out_channels=32, height=32, width=40),
    "vision": dict(batch_size=32, in_channels=64, out_channels=128, height=112, width=112),
}


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)

    def forward(self, x):
        x = self.conv(x)
        x = F.mish(x)
        return F.mish(x)


def get_inputs(batch_size=64, in_channels=64, height=256, width=256, **sizes):
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs(in_channels=64, out_channels=128, **sizes):
    return [in_channels, out_channels, 3]


def get_flops(batch_size=64, in_channels=64, out_channels=128, height=256, width=256):
    outputs = batch_size * out_channels * (height - 2) * (width - 2)
    # convolution (3 x 3); per output: bias, Mish (5) twice
    return 2 * outputs * in_channels * 9 + 11 * outputs
