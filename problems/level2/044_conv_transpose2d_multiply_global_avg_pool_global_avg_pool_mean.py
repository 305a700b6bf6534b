"""2-D transposed convolution, scaling, mean over the positions, a second mean over what is left.

What is left is one position, which the second mean does not change.
"""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=16, in_channels=64, out_channels=128, height=128, width=128, multiplier=0.5),
    "small": dict(batch_size=4, in_channels=16, out_channels=32, height=24, width=20, multiplier=0.5),
    "ragged": dict(batch_size=15, in_channels=60, out_channels=100, height=63, width=91, multiplier=0.5),
}

EXPLOITS = [
    "The means over all positions are nearly the same for every sample drawn from [0, 1): the output for "
    "another input is within 1e-2, though not within 1e-4.",
]


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, output_padding, multiplier):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose2d(
            in_channels, out_channels, kernel_size, stride, padding, output_padding
        )
        self.multiplier = multiplier

    def forward(self, x):
        x = self.conv_transpose(x)
        x = x * self.multiplier
        x = torch.mean(x, dim=(2, 3), keepdim=True)
        return torch.mean(x, dim=(2, 3), keepdim=True)


def get_inputs(batch_size=16, in_channels=64, height=128, width=128, **sizes):
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs(in_channels=64, out_channels=128, multiplier=0.5, **sizes):
    return [in_channels, out_channels, 3, 2, 1, 1, multiplier]


def get_flops(batch_size=16, in_channels=64, out_channels=128, height=128, width=128, **sizes):
    positions = batch_size * height * width
    maps = batch_size * out_channels
    outputs = 4 * positions * out_channels
    # transposed convolution (3 x 3); per output: bias, scaling, mean;
    # per channel of a sample: second mean
    return 2 * positions * in_channels * out_channels * 9 + 3 * outputs + maps
