"""2-D convolution, tanh, scaling by a constant, addition of a bias a channel, max pooling."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=128, in_channels=8, out_channels=64, height=256, width=256),
    "small": dict(batch_size=4, in_channels=8, out_channels=64, height=32, width=32),
    "ragged": dict(batch_size=30, in_channels=7, out_channels=61, height=129, width=97),
}


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, scaling_factor, bias_shape, pool_kernel_size):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.scaling_factor = scaling_factor
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.pool_kernel_size = pool_kernel_size

    def forward(self, x):
        x = self.conv(x)
        x = torch.tanh(x)
        x = x * self.scaling_factor
        x = x + self.bias
        return F.max_pool2d(x, self.pool_kernel_size)


def get_inputs(batch_size=128, in_channels=8, height=256, width=256, **sizes):
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs(in_channels=8, out_channels=64, **sizes):
    return [in_channels, out_channels, 3, 2.0, (out_channels, 1, 1), 4]


def get_flops(batch_size=128, in_channels=8, out_channels=64, height=256, width=256):
    outputs = batch_size * out_channels * (height - 2) * (width - 2)
    pooled = batch_size * out_channels * ((height - 2) // 4) * ((width - 2) // 4)
    # convolution with 3 x 3 taps; per output of it: bias, tanh, scaling, sum; per pooled value: window of 16
    return 2 * outputs * in_channels * 9 + 4 * outputs + 16 * pooled
