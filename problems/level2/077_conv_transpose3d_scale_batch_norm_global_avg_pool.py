"""3-D transposed convolution, scaling by a constant, batch norm, average of each channel."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=16, in_channels=64, out_channels=128, depth=16, height=32, width=32),
    "small": dict(batch_size=2, in_channels=16, out_channels=32, depth=6, height=8, width=8),
    "ragged": dict(batch_size=7, in_channels=48, out_channels=99, depth=9, height=17, width=23),
}

EXPLOITS = [
    "Weight and bias of the norm are initialised to ones and zeros, so leaving them out passes.",
]


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, scale_factor, eps=1e-5, momentum=0.1):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(in_channels, out_channels, kernel_size)
        self.scale_factor = scale_factor
        self.batch_norm = nn.BatchNorm3d(out_channels, eps=eps, momentum=momentum)

    def forward(self, x):
        x = self.conv_transpose(x)
        x = x * self.scale_factor
        x = self.batch_norm(x)
        return torch.mean(x, dim=[2, 3, 4], keepdim=True)


def get_inputs(batch_size=16, in_channels=64, depth=16, height=32, width=32, **sizes):
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs(in_channels=64, out_channels=128, **sizes):
    return [in_channels, out_channels, 5, 2.0]


def get_flops(batch_size=16, in_channels=64, out_channels=128, depth=16, height=32, width=32):
    inputs = batch_size * in_channels * depth * height * width
    outputs = batch_size * out_channels * (depth + 4) * (height + 4) * (width + 4)
    # transposed convolution with 125 taps; per output of it: bias, scaling, batch norm (7), mean
    return 2 * inputs * out_channels * 125 + 10 * outputs
