"""Transposed 2D convolution of a wide image, 3 x 3 kernel, without bias."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=8, in_channels=32, out_channels=32, height=512, width=1024),
    "small": dict(batch_size=2, in_channels=16, out_channels=16, height=32, width=64),
    "ragged": dict(batch_size=3, in_channels=19, out_channels=37, height=131, width=259),
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
        groups=1,
        bias=False,
    ):
        super().__init__()
        self.conv_transpose2d = nn.ConvTranspose2d(
            in_channels, out_channels, kernel_size, stride, padding, output_padding, groups, bias
        )

    def forward(self, x):
        return self.conv_transpose2d(x)


def get_inputs(batch_size=8, in_channels=32, height=512, width=1024, **sizes):
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs(in_channels=32, out_channels=32, **sizes):
    return [in_channels, out_channels, 3]


def get_flops(batch_size=8, in_channels=32, out_channels=32, height=512, width=1024):
    # every input meets the 3 x 3 taps of each output channel
    inputs = batch_size * in_channels * height * width
    return 2 * inputs * out_channels * 3 * 3
