"""Transposed 3D convolution that doubles each side: 3 x 5 x 7 kernel, stride 2, 4 groups, without bias."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=8, in_channels=32, out_channels=32, depth=12, height=24, width=48),
    "small": dict(batch_size=2, in_channels=16, out_channels=16, depth=6, height=8, width=12),
    "ragged": dict(batch_size=3, in_channels=20, out_channels=28, depth=7, height=13, width=25),
}


class Model(nn.Module):
    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=(1, 1, 1),
        padding=(0, 0, 0),
        output_padding=(0, 0, 0),
        groups=1,
        bias=False,
    ):
        super().__init__()
        self.conv_transpose3d = nn.ConvTranspose3d(
            in_channels, out_channels, kernel_size, stride, padding, output_padding, groups, bias
        )

    def forward(self, x):
        return self.conv_transpose3d(x)


def get_inputs(batch_size=8, in_channels=32, depth=12, height=24, width=48, **sizes):
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs(in_channels=32, out_channels=32, **sizes):
    return [in_channels, out_channels, (3, 5, 7), (2, 2, 2), (1, 2, 3), (1, 1, 1), 4]


def get_flops(batch_size=8, in_channels=32, out_channels=32, depth=12, height=24, width=48):
    # every input meets the 3 x 5 x 7 taps of each output channel of its group
    inputs = batch_size * in_channels * depth * height * width
    return 2 * inputs * (out_channels // 4) * 3 * 5 * 7
