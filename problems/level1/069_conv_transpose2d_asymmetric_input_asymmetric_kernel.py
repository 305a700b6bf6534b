"""Transposed 2D convolution of a wide image, 3 x 5 kernel, without bias."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=64, in_channels=64, out_channels=128, height=128, width=256),
    "small": dict(batch_size=2, in_channels=16, out_channels=32, height=32, width=64),
    "ragged": dict(batch_size=5, in_channels=37, out_channels=75, height=67, width=131),
}


class Model(nn.Module):
    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=(1, 1),
        padding=(0, 0),
        output_padding=(0, 0),
        dilation=(1, 1),
        groups=1,
        bias=False,
    ):
        super().__init__()
        self.conv_transpose2d = nn.ConvTranspose2d(
            in_channels, out_channels, kernel_size, stride, padding, output_padding, groups, bias, dilation
        )

    def forward(self, x):
        return self.conv_transpose2d(x)


def get_inputs(batch_size=64, in_channels=64, height=128, width=256, **sizes):
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs(in_channels=64, out_channels=128, **sizes):
    return [in_channels, out_channels, (3, 5)]


def get_flops(batch_size=64, in_channels=64, out_channels=128, height=128, width=256):
    # every input meets the 3 x 5 taps of each output channel
    inputs = batch_size * in_channels * height * width
    return 2 * inputs * out_channels * 3 * 5
