"""Transposed 2D convolution, 3 x 3 kernel, stride 5, padding 1, dilation 2, without bias.

Three taps reach 3 of 5 positions along an axis, so 16 of 25 outputs are zero.
"""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=16, in_channels=32, out_channels=64, height=64, width=128),
    "small": dict(batch_size=2, in_channels=16, out_channels=32, height=16, width=32),
    "ragged": dict(batch_size=3, in_channels=19, out_channels=37, height=33, width=65),
}


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, bias=False):
        super().__init__()
        self.conv_transpose2d = nn.ConvTranspose2d(
            in_channels, out_channels, kernel_size, stride, padding, dilation=dilation, bias=bias
        )

    def forward(self, x):
        return self.conv_transpose2d(x)


def get_inputs(batch_size=16, in_channels=32, height=64, width=128, **sizes):
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs(in_channels=32, out_channels=64, **sizes):
    return [in_channels, out_channels, 3, 5, 1, 2]


def get_flops(batch_size=16, in_channels=32, out_channels=64, height=64, width=128):
    # every input meets the 3 x 3 taps of each output channel
    inputs = batch_size * in_channels * height * width
    return 2 * inputs * out_channels * 3 * 3
