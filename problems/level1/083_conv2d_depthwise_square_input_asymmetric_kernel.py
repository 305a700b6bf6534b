"""Depthwise 2D convolution of a square image, k x 1 kernel (along the height), without bias.

The constructor takes the integer k, here 3.
"""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=64, in_channels=8, height=512, width=512),
    "small": dict(batch_size=4, in_channels=8, height=64, width=64),
    "ragged": dict(batch_size=7, in_channels=13, height=131, width=131),
}


class Model(nn.Module):
    def __init__(self, in_channels, kernel_size, stride=1, padding=0, dilation=1, bias=False):
        super().__init__()
        self.conv2d = nn.Conv2d(
            in_channels, in_channels, (kernel_size, 1), stride, padding, dilation, in_channels, bias
        )

    def forward(self, x):
        return self.conv2d(x)


def get_inputs(batch_size=64, in_channels=8, height=512, width=512):
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs(in_channels=8, **sizes):
    return [in_channels, 3, 1, 0, 1]


def get_flops(batch_size=64, in_channels=8, height=512, width=512):
    outputs = batch_size * in_channels * (height - 2) * width
    return 2 * outputs * 3
