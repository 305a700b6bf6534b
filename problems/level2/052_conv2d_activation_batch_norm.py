"""2-D convolution, tanh(softplus(x)) * x (Mish spelled out), batch norm."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=64, in_channels=64, out_channels=128, height=128, width=128),
    "small": dict(batch_size=4, in_channels=16, out_channels=32, height=32, width=32),
    "ragged": dict(batch_size=17, in_channels=48, out_channels=100, height=97, width=127),
}

EXPLOITS = [
    "Weight and bias of the norm are initialised to ones and zeros, so leaving them out passes.",
]


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, eps=1e-5, momentum=0.1):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.bn = nn.BatchNorm2d(out_channels, eps=eps, momentum=momentum)

    def forward(self, x):
        x = self.conv(x)
        x = torch.tanh(F.softplus(x)) * x
        return self.bn(x)


def get_inputs(batch_size=64, in_channels=64, height=128, width=128, **sizes):
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs(in_channels=64, out_channels=128, **sizes):
    return [in_channels, out_channels, 3]


def get_flops(batch_size=64, in_channels=64, out_channels=128, height=128, width=128):
    outputs = batch_size * out_channels * (height - 2) * (width - 2)
    # convolution with 3 x 3 taps; per output: bias, softplus (3), tanh, product, batch norm (7)
    return 2 * outputs * in_channels * 9 + 13 * outputs
