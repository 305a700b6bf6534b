"""3-D convolution, ReLU, leaky ReLU, GELU, sigmoid, addition of a bias of its own."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=64, in_channels=8, out_channels=32, depth=32, height=64, width=64),
    "small": dict(batch_size=2, in_channels=8, out_channels=16, depth=10, height=16, width=20),
    "ragged": dict(batch_size=20, in_channels=7, out_channels=30, depth=17, height=45, width=51),
}

CENTRED = 1.0  # by initial weights some units are zero for all inputs


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, bias_shape):
        super().__init__()
        self.conv = nn.Conv3d(in_channels, out_channels, kernel_size)
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x):
        x = self.conv(x)
        x = torch.relu(x)
        x = F.leaky_relu(x, negative_slope=0.01)
        x = F.gelu(x)
        x = torch.sigmoid(x)
        return x + self.bias


def get_inputs(batch_size=64, in_channels=8, depth=32, height=64, width=64, **sizes):
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs(in_channels=8, out_channels=32, **sizes):
    return [in_channels, out_channels, 3, (out_channels, 1, 1, 1)]


def get_flops(batch_size=64, in_channels=8, out_channels=32, depth=32, height=64, width=64):
    outputs = batch_size * out_channels * (depth - 2) * (height - 2) * (width - 2)
    # convolution (3 x 3 x 3);
    # per output: bias, comparison, leaky ReLU (2), GELU (5), sigmoid (4), second bias
    return 2 * outputs * in_channels * 27 + 14 * outputs
