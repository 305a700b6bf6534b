"""Transposed 2D convolution, 3 x 5 kernel, stride (2, 3), padding (1, 2), dilation (2, 1), 4 groups.

Stride and dilation share the factor 2 along the height, so every even output row is zero. No bias.
"""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=16, in_channels=32, out_channels=64, height=128, width=256),
    "small": dict(batch_size=2, in_channels=16, out_channels=32, height=16, width=32),
    "ragged": dict(batch_size=3, in_channels=20, out_channels=28, height=67, width=131),
}


class Model(nn.Module):
    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=(1, 1),
        padding=(0, 0),
        dilation=(1, 1),
        groups=1,
        bias=False,
    ):
        super().__init__()
        self.conv_transpose2d = nn.ConvTranspose2d(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            groups=groups,
            bias=bias,
            dilation=dilation,
        )

    def forward(self, x):
        return self.conv_transpose2d(x)


def get_inputs(batch_size=16, in_channels=32, height=128, width=256, **sizes):
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs(in_channels=32, out_channels=64, **sizes):
    return [in_channels, out_channels, (3, 5), (2, 3), (1, 2), (2, 1), 4]


def get_flops(batch_size=16, in_channels=32, out_channels=64, height=128, width=256):
    # every input meets the 3 x 5 taps of each output channel of its group
    inputs = batch_size * in_channels * height * width
    return 2 * inputs * (out_channels // 4) * 3 * 5
