"""Transposed 1D convolution of a long sequence, 5 taps, dilation 3, without bias."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=32, in_channels=32, out_channels=64, length=131072),
    "small": dict(batch_size=4, in_channels=16, out_channels=32, length=2048),
    "ragged": dict(batch_size=5, in_channels=19, out_channels=37, length=10007),
}


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, bias=False):
        super().__init__()
        self.conv1d_transpose = nn.ConvTranspose1d(
            in_channels, out_channels, kernel_size, stride, padding, dilation=dilation, bias=bias
        )

    def forward(self, x):
        return self.conv1d_transpose(x)


def get_inputs(batch_size=32, in_channels=32, length=131072, **sizes):
    return [torch.rand(batch_size, in_channels, length)]


def get_init_inputs(in_channels=32, out_channels=64, **sizes):
    return [in_channels, out_channels, 5, 1, 0, 3]


def get_flops(batch_size=32, in_channels=32, out_channels=64, length=131072):
    # every input meets the 5 taps of each output channel
    inputs = batch_size * in_channels * length
    return 2 * inputs * out_channels * 5
