"""3-D convolution, softmax over the channels, max pooling twice."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=128, in_channels=3, out_channels=16, depth=16, height=32, width=32),
    "small": dict(batch_size=4, in_channels=3, out_channels=16, depth=12, height=16, width=20),
    "ragged": dict(batch_size=50, in_channels=5, out_channels=21, depth=19, height=45, width=39),
}


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, pool_kernel_size):
        super().__init__()
        self.conv = nn.Conv3d(in_channels, out_channels, kernel_size)
        self.pool1 = nn.MaxPool3d(pool_kernel_size)
        self.pool2 = nn.MaxPool3d(pool_kernel_size)

    def forward(self, x):
        x = self.conv(x)
        x = torch.softmax(x, dim=1)
        x = self.pool1(x)
        return self.pool2(x)


def get_inputs(batch_size=128, in_channels=3, depth=16, height=32, width=32, **sizes):
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs(in_channels=3, out_channels=16, **sizes):
    return [in_channels, out_channels, 3, 2]


def get_flops(batch_size=128, in_channels=3, out_channels=16, depth=16, height=32, width=32):
    maps = batch_size * out_channels
    outputs = maps * (depth - 2) * (height - 2) * (width - 2)
    pooled1 = maps * ((depth - 2) // 2) * ((height - 2) // 2) * ((width - 2) // 2)
    pooled2 = maps * ((depth - 2) // 4) * ((height - 2) // 4) * ((width - 2) // 4)
    # convolution (3 x 3 x 3); per output: bias, softmax (5); per pooled output: window (8)
    return 2 * outputs * in_channels * 27 + 6 * outputs + 8 * (pooled1 + pooled2)
