"""1 x 1 convolution, a matrix product across the channels of each pixel, without bias."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=16, in_channels=64, out_channels=128, height=1024, width=1024),
    "small": dict(batch_size=2, in_channels=16, out_channels=32, height=64, width=64),
    "ragged": dict(batch_size=3, in_channels=37, out_channels=75, height=131, width=131),
    "vision": dict(batch_size=64, in_channels=256, out_channels=64, height=56, width=56),
}


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, bias=False):
        super().__init__()
        self.conv1d = nn.Conv2d(in_channels, out_channels, kernel_size=1, bias=bias)

    def forward(self, x):
        return self.conv1d(x)


def get_inputs(batch_size=16, in_channels=64, height=1024, width=1024, **sizes):
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs(in_channels=64, out_channels=128, **sizes):
    return [in_channels, out_channels]


def get_flops(batch_size=16, in_channels=64, out_channels=128, height=1024, width=1024):
    return 2 * batch_size * height * width * in_channels * out_channels
