"""1D convolution of a long sequence, 3 taps, without bias."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=32, in_channels=64, out_channels=128, length=131072),
    "small": dict(batch_size=4, in_channels=16, out_channels=32, length=2048),
    "ragged": dict(batch_size=5, in_channels=37, out_channels=75, length=10007),
    "audio": dict(batch_size=16, in_channels=80, out_channels=768, length=3000),
}


class Model(nn.Module):
    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=False
    ):
        super().__init__()
        self.conv1d = nn.Conv1d(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias
        )

    def forward(self, x):
        return self.conv1d(x)


def get_inputs(batch_size=32, in_channels=64, length=131072, **sizes):
    return [torch.rand(batch_size, in_channels, length)]


def get_init_inputs(in_channels=64, out_channels=128, **sizes):
    return [in_channels, out_channels, 3]


def get_flops(batch_size=32, in_channels=64, out_channels=128, length=131072):
    outputs = batch_size * out_channels * (length - 2)
    return 2 * outputs * in_channels * 3
