"""2-D convolution, average pooling, sigmoid, sum of each sample."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=128, in_channels=8, out_channels=64, height=384, width=384),
    "small": dict(batch_size=4, in_channels=8, out_channels=64, height=32, width=32),
    "ragged": dict(batch_size=30, in_channels=7, out_channels=61, height=129, width=97),
}

EXPLOITS = [
    "At the published size every sample sums to nearly the same value (spread of 1e-5 relative), so the "
    "output for another input passes even at a tolerance of 1e-4.",
]


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, pool_kernel_size):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.pool_kernel_size = pool_kernel_size

    def forward(self, x):
        x = self.conv(x)
        x = F.avg_pool2d(x, self.pool_kernel_size)
        x = torch.sigmoid(x)
        return torch.sum(x, dim=[1, 2, 3])


def get_inputs(batch_size=128, in_channels=8, height=384, width=384, **sizes):
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs(in_channels=8, out_channels=64, **sizes):
    return [in_channels, out_channels, 3, 4]


def get_flops(batch_size=128, in_channels=8, out_channels=64, height=384, width=384):
    outputs = batch_size * out_channels * (height - 2) * (width - 2)
    pooled = batch_size * out_channels * ((height - 2) // 4) * ((width - 2) // 4)
    # convolution with 3 x 3 taps; per output of it: bias; per pooled value: window of 16, sigmoid (4), sum
    return 2 * outputs * in_channels * 9 + outputs + 21 * pooled
