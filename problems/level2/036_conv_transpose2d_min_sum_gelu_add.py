"""2-D transposed convolution, minimum over the channels, sum over the height, GELU, bias."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=16, in_channels=64, out_channels=128, height=128, width=128),
    "small": dict(batch_size=4, in_channels=8, out_channels=16, height=4, width=32),
    "ragged": dict(batch_size=101, in_channels=6, out_channels=7, height=5, width=333),
}

RAISED = 1.4  # the sum of minima is not far below zero then

EXPLOITS = [
    "The minima over the channels are negative, and 256 of them sum to where GELU is exactly 0: "
    "the published output is the bias everywhere, for any input tried with initial weights.",
]


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, output_padding, bias_shape):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose2d(
            in_channels, out_channels, kernel_size, stride, padding, output_padding
        )
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x):
        x = self.conv_transpose(x)
        x = torch.min(x, dim=1, keepdim=True)[0]
        x = torch.sum(x, dim=2, keepdim=True)
        x = F.gelu(x)
        return x + self.bias


def get_inputs(batch_size=16, in_channels=64, height=128, width=128, **sizes):
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs(in_channels=64, out_channels=128, **sizes):
    return [in_channels, out_channels, 3, 2, 1, 1, (1, 1, 1)]


def get_flops(batch_size=16, in_channels=64, out_channels=128, height=128, width=128):
    positions = batch_size * height * width
    minima = 4 * positions
    columns = batch_size * 2 * width
    matmul = 2 * positions * in_channels * out_channels * 9
    # transposed convolution (3 x 3); per output: bias, minimum; per minimum: sum;
    # per column: GELU (5), bias
    return matmul + 2 * minima * out_channels + minima + 6 * columns
