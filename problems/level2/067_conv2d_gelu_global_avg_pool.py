"""2-D convolution, GELU (exact), average of each channel."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=128, in_channels=8, out_channels=64, height=256, width=256),
    "small": dict(batch_size=4, in_channels=8, out_channels=64, height=32, width=32),
    "vision": dict(batch_size=64, in_channels=3, out_channels=64, height=224, width=224),
}

EXPLOITS = [
    "The averages depend on the weights and hardly on the input: those of another input pass at a tolerance "
    "of 1e-2.",
]


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)

    def forward(self, x):
        x = self.conv(x)
        x = F.gelu(x)
        return torch.mean(x, dim=[2, 3])


def get_inputs(batch_size=128, in_channels=8, height=256, width=256, **sizes):
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs(in_channels=8, out_channels=64, **sizes):
    return [in_channels, out_channels, 3]


def get_flops(batch_size=128, in_channels=8, out_channels=64, height=256, width=256):
    outputs = batch_size * out_channels * (height - 2) * (width - 2)
    # convolution with 3 x 3 taps; per output: bias, GELU (5), mean
    return 2 * outputs * in_channels * 9 + 7 * outputs
