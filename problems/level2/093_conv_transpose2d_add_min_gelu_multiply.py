"""2-D transposed convolution, addition of a constant, minimum with 0, GELU (exact), scaling."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=128, in_channels=64, out_channels=128, height=64, width=64),
    "small": dict(batch_size=4, in_channels=64, out_channels=16, height=16, width=16),
    "ragged": dict(batch_size=30, in_channels=99, out_channels=47, height=61, width=53),
}

EXPLOITS = [
    "At the published size almost nothing is negative after adding 0.5: about one output in a million "
    "differs from 0, so zeros pass wherever a few wrong elements are allowed.",
]


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, add_value, multiply_value):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose2d(in_channels, out_channels, kernel_size, stride)
        self.add_value = add_value
        self.multiply_value = multiply_value

    def forward(self, x):
        x = self.conv_transpose(x)
        x = x + self.add_value
        x = torch.clamp(x, max=0.0)
        x = F.gelu(x)
        return x * self.multiply_value


def get_inputs(batch_size=128, in_channels=64, height=64, width=64, **sizes):
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs(in_channels=64, out_channels=128, **sizes):
    return [in_channels, out_channels, 4, 2, 0.5, 2.0]


def get_flops(batch_size=128, in_channels=64, out_channels=128, height=64, width=64):
    inputs = batch_size * in_channels * height * width
    outputs = batch_size * out_channels * (2 * height + 2) * (2 * width + 2)
    # transposed convolution with 4 x 4 taps; per output: bias, sum, minimum, GELU (5), product
    return 2 * inputs * out_channels * 16 + 9 * outputs
