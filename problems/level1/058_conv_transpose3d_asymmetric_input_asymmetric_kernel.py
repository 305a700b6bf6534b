"""Transposed 3D convolution of an uneven volume, 3 x 5 x 7 kernel, without bias."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=16, in_channels=32, out_channels=16, depth=16, height=32, width=64),
    "small": dict(batch_size=2, in_channels=8, out_channels=8, depth=8, height=12, width=16),
    "ragged": dict(batch_size=3, in_channels=19, out_channels=37, depth=11, height=23, width=45),
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


def get_inputs(batch_size=16, in_channels=32, depth=16, height=32, width=64, **sizes):
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs(in_channels=32, out_channels=16, **sizes):
    return [in_channels, out_channels, (3, 5, 7)]


def get_flops(batch_size=16, in_channels=32, out_channels=16, depth=16, height=32, width=64):
    # every input meets the 3 x 5 x 7 taps of each output channel
    inputs = batch_size * in_channels * depth * height * width
    return 2 * inputs * out_channels * 3 * 5 * 7
