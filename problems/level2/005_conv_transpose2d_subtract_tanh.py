"""2-D transposed convolution, subtraction of a bias, tanh."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=32, in_channels=64, out_channels=64, height=256, width=256),
    "small": dict(batch_size=4, in_channels=16, out_channels=16, height=24, width=20),
    "ragged": dict(batch_size=15, in_channels=36, out_channels=52, height=101, width=127),
}


class Model(nn.Module):
    def __init__(
        self, in_channels, out_channels, kernel_size, bias_shape, stride=2, padding=1, output_padding=1
    ):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose2d(
            in_channels, out_channels, kernel_size, stride, padding, output_padding
        )
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x):
        x = self.conv_transpose(x)
        x = x - self.bias
        return torch.tanh(x)


def get_inputs(batch_size=32, in_channels=64, height=256, width=256, **sizes):
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs(in_channels=64, out_channels=64, **sizes):
    return [in_channels, out_channels, 4, (out_channels, 1, 1)]


def get_flops(batch_size=32, in_channels=64, out_channels=64, height=256, width=256):
    positions = batch_size * height * width
    outputs = batch_size * out_channels * (2 * height + 1) * (2 * width + 1)
    # transposed convolution (4 x 4); per output: bias, subtraction, tanh
    return 2 * positions * in_channels * out_channels * 16 + 3 * outputs
