"""3-D transposed convolution, scaling, max pooling, average of each channel, clamp to [0, 1]."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=128, in_channels=3, out_channels=16, depth=16, height=32, width=32),
    "small": dict(batch_size=4, in_channels=3, out_channels=16, depth=8, height=12, width=12),
    "ragged": dict(batch_size=21, in_channels=5, out_channels=24, depth=13, height=31, width=37),
}

EXPLOITS = [
    "The averages depend on the weights and hardly on the input: those of another input pass at a tolerance "
    "of 1e-2.",
    "The averages stay far below 1, so leaving the upper limit of the clamp out passes.",
]


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, scale, maxpool_kernel_size):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(in_channels, out_channels, kernel_size, stride, padding)
        self.scale = scale
        self.maxpool_kernel_size = maxpool_kernel_size

    def forward(self, x):
        x = self.conv_transpose(x)
        x = x * self.scale
        x = F.max_pool3d(x, self.maxpool_kernel_size)
        x = torch.mean(x, dim=[2, 3, 4], keepdim=True)
        return torch.clamp(x, 0, 1)


def get_inputs(batch_size=128, in_channels=3, depth=16, height=32, width=32, **sizes):
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs(in_channels=3, out_channels=16, **sizes):
    return [in_channels, out_channels, 3, 2, 1, 0.5, 2]


def get_flops(batch_size=128, in_channels=3, out_channels=16, depth=16, height=32, width=32):
    inputs = batch_size * in_channels * depth * height * width
    outputs = batch_size * out_channels * (2 * depth - 1) * (2 * height - 1) * (2 * width - 1)
    # 2 n - 1 values halve, rounded down, to n - 1
    pooled = batch_size * out_channels * (depth - 1) * (height - 1) * (width - 1)
    # transposed convolution with 27 taps; per output of it: bias, scaling;
    # per pooled value: window of 8, mean; per channel: clamp (2)
    return 2 * inputs * out_channels * 27 + 2 * outputs + 9 * pooled + 2 * batch_size * out_channels
