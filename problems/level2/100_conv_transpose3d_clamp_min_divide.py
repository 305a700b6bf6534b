"""3-D transposed convolution, clamp from below, division by a constant."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=16, in_channels=64, out_channels=128, depth=24, height=48, width=48),
    "small": dict(batch_size=2, in_channels=16, out_channels=32, depth=6, height=8, width=8),
    "ragged": dict(batch_size=5, in_channels=48, out_channels=99, depth=13, height=31, width=37),
}

EXPLOITS = [
    "The convolution's outputs stay well above -1, so leaving the clamp out passes.",
]


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, min_value, divisor):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(in_channels, out_channels, kernel_size, stride, padding)
        self.min_value = min_value
        self.divisor = divisor

    def forward(self, x):
        x = self.conv_transpose(x)
        x = torch.clamp(x, min=self.min_value)
        return x / self.divisor


def get_inputs(batch_size=16, in_channels=64, depth=24, height=48, width=48, **sizes):
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs(in_channels=64, out_channels=128, **sizes):
    return [in_channels, out_channels, 3, 2, 1, -1.0, 2.0]


def get_flops(batch_size=16, in_channels=64, out_channels=128, depth=24, height=48, width=48):
    inputs = batch_size * in_channels * depth * height * width
    outputs = batch_size * out_channels * (2 * depth - 1) * (2 * height - 1) * (2 * width - 1)
    # transposed convolution with 27 taps; per output: bias, comparison, division
    return 2 * inputs * out_channels * 27 + 3 * outputs
