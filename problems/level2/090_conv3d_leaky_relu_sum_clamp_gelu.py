"""3-D convolution, leaky ReLU, addition of a parameter a channel, clamp to [-1, 1], GELU (exact)."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=128, in_channels=8, out_channels=64, depth=16, height=64, width=64),
    "small": dict(batch_size=2, in_channels=8, out_channels=32, depth=10, height=16, width=16),
    "ragged": dict(batch_size=13, in_channels=7, out_channels=61, depth=17, height=65, width=63),
}

CENTRED = 4.0  # by initial weights what is added clamps a third of the channels


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, sum_tensor_shape):
        super().__init__()
        self.conv = nn.Conv3d(in_channels, out_channels, kernel_size)
        self.sum_tensor = nn.Parameter(torch.randn(sum_tensor_shape))

    def forward(self, x):
        x = self.conv(x)
        x = F.leaky_relu(x, 0.2)
        x = x + self.sum_tensor
        x = torch.clamp(x, -1.0, 1.0)
        return F.gelu(x)


def get_inputs(batch_size=128, in_channels=8, depth=16, height=64, width=64, **sizes):
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs(in_channels=8, out_channels=64, **sizes):
    return [in_channels, out_channels, 3, (out_channels, 1, 1, 1)]


def get_flops(batch_size=128, in_channels=8, out_channels=64, depth=16, height=64, width=64):
    outputs = batch_size * out_channels * (depth - 2) * (height - 2) * (width - 2)
    # convolution with 27 taps; per output: bias, leaky ReLU (2), sum, clamp (2), GELU (5)
    return 2 * outputs * in_channels * 27 + 11 * outputs
