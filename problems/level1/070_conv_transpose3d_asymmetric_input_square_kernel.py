"""Transposed 3D convolution, 3 x 3 x 3 kernel, without bias.

The published input is a cube, whatever the name says; the ragged one is not.
"""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=8, in_channels=48, out_channels=24, depth=96, height=96, width=96),
    "small": dict(batch_size=2, in_channels=12, out_channels=8, depth=16, height=16, width=16),
    "ragged": dict(batch_size=3, in_channels=29, out_channels=13, depth=23, height=31, width=45),
}


class Model(nn.Module):
    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        output_padding=0,
        dilation=1,
        groups=1,
        bias=False,
    ):
        super().__init__()
        self.conv_transpose3d = nn.ConvTranspose3d(
            in_channels, out_channels, kernel_size, stride, padding, output_padding, groups, bias, dilation
        )

    def forward(self, x):
        return self.conv_transpose3d(x)


def get_inputs(batch_size=8, in_channels=48, depth=96, height=96, width=96, **sizes):
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs(in_channels=48, out_channels=24, **sizes):
    return [in_channels, out_channels, 3]


def get_flops(batch_size=8, in_channels=48, out_channels=24, depth=96, height=96, width=96):
    # every input meets the 3 x 3 x 3 taps of each output channel
    inputs = batch_size * in_channels * depth * height * width
    return 2 * inputs * out_channels * 3 * 3 * 3
