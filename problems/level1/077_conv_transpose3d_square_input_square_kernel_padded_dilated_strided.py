"""Transposed 3D convolution, 3 x 3 x 3 kernel, stride 2, padding 1, dilation 2, without bias.

Stride and dilation share the factor 2, so an output is zero unless all its coordinates are odd.
"""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=16, in_channels=32, out_channels=64, depth=16, height=32, width=32),
    "small": dict(batch_size=2, in_channels=8, out_channels=16, depth=8, height=12, width=12),
    "ragged": dict(batch_size=3, in_channels=19, out_channels=37, depth=9, height=17, width=17),
}


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, bias=False):
        super().__init__()
        self.conv_transpose3d = nn.ConvTranspose3d(
            in_channels, out_channels, kernel_size, stride, padding, dilation=dilation, bias=bias
        )

    def forward(self, x):
        return self.conv_transpose3d(x)


def get_inputs(batch_size=16, in_channels=32, depth=16, height=32, width=32, **sizes):
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs(in_channels=32, out_channels=64, **sizes):
    return [in_channels, out_channels, 3, 2, 1, 2]


def get_flops(batch_size=16, in_channels=32, out_channels=64, depth=16, height=32, width=32):
    # every input meets the 3 x 3 x 3 taps of each output channel
    inputs = batch_size * in_channels * depth * height * width
    return 2 * inputs * out_channels * 3 * 3 * 3
