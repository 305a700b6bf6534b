"""3-D transposed convolution, mean over the depth, bias, softmax over the channels, tanh, scaling."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(
        batch_size=16, in_channels=16, out_channels=64, depth=32, height=128, width=128, scaling_factor=2.0
    ),
    "small": dict(
        batch_size=2, in_channels=8, out_channels=16, depth=8, height=16, width=20, scaling_factor=2.0
    ),
    "ragged": dict(
        batch_size=7, in_channels=13, out_channels=50, depth=21, height=77, width=93, scaling_factor=3.0
    ),
}


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, scaling_factor):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(in_channels, out_channels, kernel_size, stride, padding)
        self.bias = nn.Parameter(torch.randn(1, out_channels, 1, 1, 1))
        self.scaling_factor = scaling_factor

    def forward(self, x):
        x = self.conv_transpose(x)
        x = torch.mean(x, dim=2, keepdim=True)
        x = x + self.bias
        x = torch.softmax(x, dim=1)
        x = torch.tanh(x)
        return x * self.scaling_factor


def get_inputs(batch_size=16, in_channels=16, depth=32, height=128, width=128, **sizes):
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs(in_channels=16, out_channels=64, scaling_factor=2.0, **sizes):
    return [in_channels, out_channels, 3, 1, 1, scaling_factor]


def get_flops(batch_size=16, in_channels=16, out_channels=64, depth=32, height=128, width=128, **sizes):
    positions = batch_size * depth * height * width
    outputs = positions * out_channels
    means = batch_size * out_channels * height * width
    # transposed convolution (3 x 3 x 3, same size); per output: bias, mean over the depth;
    # per mean: second bias, softmax (5), tanh, scaling
    return 2 * outputs * in_channels * 27 + 2 * outputs + 8 * means
