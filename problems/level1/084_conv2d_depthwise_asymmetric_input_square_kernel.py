"""Depthwise 2D convolution of a wide image, 3 x 3 kernel, without bias.

``out_channels`` is a multiple of ``in_channels``; published are equal ones.
"""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=64, in_channels=128, out_channels=128, height=256, width=512),
    "small": dict(batch_size=2, in_channels=16, out_channels=16, height=32, width=64),
    "ragged": dict(batch_size=5, in_channels=37, out_channels=37, height=131, width=259),
    "multiplier": dict(batch_size=5, in_channels=32, out_channels=64, height=128, width=256),
}


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, bias=False):
        super().__init__()
        self.conv2d = nn.Conv2d(
            in_channels, out_channels, kernel_size, stride, padding, groups=in_channels, bias=bias
        )

    def forward(self, x):
        return self.conv2d(x)


def get_inputs(batch_size=64, in_channels=128, height=256, width=512, **sizes):
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs(in_channels=128, out_channels=128, **sizes):
    return [in_channels, out_channels, 3, 1, 0]


def get_flops(batch_size=64, out_channels=128, height=256, width=512, **sizes):
    # an output sees one input channel
    outputs = batch_size * out_channels * (height - 2) * (width - 2)
    return 2 * outputs * 3 * 3
