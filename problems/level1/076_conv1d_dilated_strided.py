"""1D convolution of a long sequence, 3 taps, stride 3, dilation 4, without bias."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=64, in_channels=64, out_channels=128, length=524280),
    "small": dict(batch_size=4, in_channels=16, out_channels=32, length=6000),
    "ragged": dict(batch_size=5, in_channels=37, out_channels=75, length=100003),
}


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride=1, dilation=1, bias=False):
        super().__init__()
        self.conv1d = nn.Conv1d(in_channels, out_channels, kernel_size, stride, dilation=dilation, bias=bias)

    def forward(self, x):
        return self.conv1d(x)


def get_inputs(batch_size=64, in_channels=64, length=524280, **sizes):
    return [torch.rand(batch_size, in_channels, length)]


def get_init_inputs(in_channels=64, out_channels=128, **sizes):
    return [in_channels, out_channels, 3, 3, 4]


def get_flops(batch_size=64, in_channels=64, out_channels=128, length=524280):
    # 3 taps with dilation 4 span 9 inputs
    outputs = batch_size * out_channels * ((length - 9) // 3 + 1)
    return 2 * outputs * in_channels * 3
