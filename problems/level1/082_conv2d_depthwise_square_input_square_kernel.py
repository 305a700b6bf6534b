"""Depthwise 2D convolution of a square image, 3 x 3 kernel, without bias."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=16, in_channels=64, height=512, width=512),
    "small": dict(batch_size=2, in_channels=16, height=64, width=64),
    "ragged": dict(batch_size=5, in_channels=37, height=131, width=131),
    "vision": dict(batch_size=64, in_channels=144, height=56, width=56),
}


class Model(nn.Module):
    def __init__(self, in_channels, kernel_size, stride=1, padding=0, bias=False):
        super().__init__()
        self.conv2d = nn.Conv2d(
            in_channels, in_channels, kernel_size, stride, padding, groups=in_channels, bias=bias
        )

    def forward(self, x):
        return self.conv2d(x)


def get_inputs(batch_size=16, in_channels=64, height=512, width=512):
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs(in_channels=64, **sizes):
    return [in_channels, 3, 1, 0]


def get_flops(batch_size=16, in_channels=64, height=512, width=512):
    outputs = batch_size * in_channels * (height - 2) * (width - 2)
    return 2 * outputs * 3 * 3
