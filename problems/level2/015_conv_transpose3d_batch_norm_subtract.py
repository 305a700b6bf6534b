"""3-D transposed convolution, batch norm, subtraction of each map's mean over its positions."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=16, in_channels=16, out_channels=32, depth=16, height=32, width=32),
    "small": dict(batch_size=2, in_channels=8, out_channels=16, depth=6, height=12, width=10),
    "ragged": dict(batch_size=13, in_channels=11, out_channels=42, depth=15, height=27, width=35),
}

EXPLOITS = [
    "Batch norm's weight is initialised to ones, so leaving it out passes.",
]


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, bias=True):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(
            in_channels, out_channels, kernel_size, stride, padding, bias=bias
        )
        self.batch_norm = nn.BatchNorm3d(out_channels)

    def forward(self, x):
        x = self.conv_transpose(x)
        x = self.batch_norm(x)
        return x - torch.mean(x, dim=(2, 3, 4), keepdim=True)


def get_inputs(batch_size=16, in_channels=16, depth=16, height=32, width=32, **sizes):
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs(in_channels=16, out_channels=32, **sizes):
    return [in_channels, out_channels, 3, 2, 1]


def get_flops(batch_size=16, in_channels=16, out_channels=32, depth=16, height=32, width=32):
    positions = batch_size * depth * height * width
    outputs = batch_size * out_channels * (2 * depth - 1) * (2 * height - 1) * (2 * width - 1)
    # transposed convolution (3 x 3 x 3); per output: bias, batch norm (7), mean, subtraction
    return 2 * positions * in_channels * out_channels * 27 + 10 * outputs
