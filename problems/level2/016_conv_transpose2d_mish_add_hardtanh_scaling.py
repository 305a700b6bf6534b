"""2-D transposed convolution, Mish, addition of a constant, hardtanh, scaling."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(
        batch_size=128, in_channels=64, out_channels=64, height=128, width=128, add_value=0.5, scale=2
    ),
    "small": dict(batch_size=4, in_channels=16, out_channels=16, height=24, width=20, add_value=0.5, scale=2),
    "ragged": dict(
        batch_size=33, in_channels=36, out_channels=52, height=63, width=101, add_value=0.5, scale=2
    ),
}


class Model(nn.Module):
    def __init__(
        self, in_channels, out_channels, kernel_size, stride, padding, output_padding, add_value, scale
    ):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose2d(
            in_channels, out_channels, kernel_size, stride, padding, output_padding
        )
        self.add_value = add_value
        self.scale = scale

    def forward(self, x):
        x = self.conv_transpose(x)
        x = F.mish(x)
        x = x + self.add_value
        x = F.hardtanh(x, min_val=-1, max_val=1)
        return x * self.scale


def get_inputs(batch_size=128, in_channels=64, height=128, width=128, **sizes):
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs(in_channels=64, out_channels=64, add_value=0.5, scale=2, **sizes):
    return [in_channels, out_channels, 3, 2, 1, 1, add_value, scale]


def get_flops(batch_size=128, in_channels=64, out_channels=64, height=128, width=128, **sizes):
    positions = batch_size * height * width
    outputs = batch_size * out_channels * (2 * height) * (2 * width)
    # transposed convolution (3 x 3); per output: bias, Mish (5), addition, hardtanh (2), scaling
    return 2 * positions * in_channels * out_channels * 9 + 10 * outputs
