"""3-D convolution, division by a constant, max pooling, global average, bias, sum over the channels."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=128, in_channels=8, out_channels=16, depth=16, height=64, width=64, divisor=2.0),
    "small": dict(batch_size=4, in_channels=8, out_channels=16, depth=10, height=16, width=20, divisor=2.0),
    "ragged": dict(batch_size=45, in_channels=7, out_channels=19, depth=13, height=41, width=55, divisor=3.0),
}

EXPLOITS = [
    "The averages over all positions hardly differ between samples drawn from [0, 1): for given weights a "
    "constant, or the output for another input, is within 1e-2, though not within 1e-4.",
]


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, divisor, pool_size, bias_shape, sum_dim):
        super().__init__()
        self.conv = nn.Conv3d(in_channels, out_channels, kernel_size)
        self.divisor = divisor
        self.max_pool = nn.MaxPool3d(pool_size)
        self.global_avg_pool = nn.AdaptiveAvgPool3d((1, 1, 1))
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.sum_dim = sum_dim

    def forward(self, x):
        x = self.conv(x)
        x = x / self.divisor
        x = self.max_pool(x)
        x = self.global_avg_pool(x)
        x = x + self.bias
        return torch.sum(x, dim=self.sum_dim)


def get_inputs(batch_size=128, in_channels=8, depth=16, height=64, width=64, **sizes):
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs(in_channels=8, out_channels=16, divisor=2.0, **sizes):
    return [in_channels, out_channels, (3, 3, 3), divisor, (2, 2, 2), (out_channels, 1, 1, 1), 1]


def get_flops(batch_size=128, in_channels=8, out_channels=16, depth=16, height=64, width=64, **sizes):
    maps = batch_size * out_channels
    outputs = maps * (depth - 2) * (height - 2) * (width - 2)
    pooled = maps * ((depth - 2) // 2) * ((height - 2) // 2) * ((width - 2) // 2)
    # convolution (3 x 3 x 3); per output: bias, division; per pooled output: window (8), mean;
    # per channel of a sample: bias, sum
    return 2 * outputs * in_channels * 27 + 2 * outputs + 9 * pooled + 2 * maps
