"""3-D transposed convolution, batch norm, average pooling twice."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=64, in_channels=3, out_channels=16, depth=32, height=32, width=32),
    "small": dict(batch_size=4, in_channels=3, out_channels=16, depth=8, height=12, width=12),
    "ragged": dict(batch_size=21, in_channels=5, out_channels=24, depth=13, height=31, width=37),
}

EXPLOITS = [
    "Weight and bias of the norm are initialised to ones and zeros, so leaving them out passes.",
]


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, bias_shape):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(in_channels, out_channels, kernel_size, stride, padding)
        self.batch_norm = nn.BatchNorm3d(out_channels)

    def forward(self, x):
        x = self.conv_transpose(x)
        x = self.batch_norm(x)
        x = F.avg_pool3d(x, 2)
        return F.avg_pool3d(x, 2)


def get_inputs(batch_size=64, in_channels=3, depth=32, height=32, width=32, **sizes):
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs(in_channels=3, out_channels=16, **sizes):
    return [in_channels, out_channels, 3, 2, 1, (out_channels, 1, 1, 1)]


def get_flops(batch_size=64, in_channels=3, out_channels=16, depth=32, height=32, width=32):
    inputs = batch_size * in_channels * depth * height * width
    outputs = batch_size * out_channels * (2 * depth - 1) * (2 * height - 1) * (2 * width - 1)
    # 2 n - 1 values halve, rounded down, to n - 1, and again
    once = batch_size * out_channels * (depth - 1) * (height - 1) * (width - 1)
    twice = batch_size * out_channels * ((depth - 1) // 2) * ((height - 1) // 2) * ((width - 1) // 2)
    # transposed convolution with 27 taps; per output of it: bias, batch norm (7);
    # per pooled value of either pooling: window of 8
    return 2 * inputs * out_channels * 27 + 8 * outputs + 8 * once + 8 * twice
