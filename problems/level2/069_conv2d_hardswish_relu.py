"""2-D convolution, hardswish, ReLU."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=128, in_channels=8, out_channels=64, height=128, width=128),
    "small": dict(batch_size=4, in_channels=8, out_channels=64, height=32, width=32),
    "vision": dict(batch_size=64, in_channels=3, out_channels=64, height=224, width=224),
}

CENTRED = 1.0  # by initial weights some units are zero for all inputs

EXPLOITS = [
    "The convolution's outputs stay below 3, so the upper limit of hardswish is never reached and leaving it "
    "out passes.",
]


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)

    def forward(self, x):
        x = self.conv(x)
        x = F.hardswish(x)
        return torch.relu(x)


def get_inputs(batch_size=128, in_channels=8, height=128, width=128, **sizes):
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs(in_channels=8, out_channels=64, **sizes):
    return [in_channels, out_channels, 3]


def get_flops(batch_size=128, in_channels=8, out_channels=64, height=128, width=128):
    outputs = batch_size * out_channels * (height - 2) * (width - 2)
    # convolution with 3 x 3 taps; per output: bias, hardswish (5), ReLU
    return 2 * outputs * in_channels * 9 + 7 * outputs
