"""2-D convolution, product with a parameter a channel, leaky ReLU, GELU (exact)."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=64, in_channels=64, out_channels=64, height=256, width=256),
    "small": dict(batch_size=4, in_channels=16, out_channels=16, height=32, width=32),
    "vision": dict(batch_size=64, in_channels=3, out_channels=64, height=224, width=224),
}


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, multiplier_shape):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.multiplier = nn.Parameter(torch.randn(multiplier_shape))

    def forward(self, x):
        x = self.conv(x)
        x = x * self.multiplier
        x = F.leaky_relu(x, 0.01)
        return F.gelu(x)


def get_inputs(batch_size=64, in_channels=64, height=256, width=256, **sizes):
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs(in_channels=64, out_channels=64, **sizes):
    return [in_channels, out_channels, 3, (out_channels, 1, 1)]


def get_flops(batch_size=64, in_channels=64, out_channels=64, height=256, width=256):
    outputs = batch_size * out_channels * (height - 2) * (width - 2)
    # convolution with 3 x 3 taps; per output: bias, product, leaky ReLU (2), GELU (5)
    return 2 * outputs * in_channels * 9 + 9 * outputs
