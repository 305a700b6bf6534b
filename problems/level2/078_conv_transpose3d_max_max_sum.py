"""3-D transposed convolution, max pooling twice, sum over the channels."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=16, in_channels=32, out_channels=64, depth=32, height=32, width=32),
    "small": dict(batch_size=2, in_channels=8, out_channels=16, depth=8, height=10, width=10),
    "ragged": dict(batch_size=7, in_channels=24, out_channels=45, depth=13, height=17, width=23),
}

CENTRED = 1.0  # by initial weights some places of a window are never the largest


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(in_channels, out_channels, kernel_size, stride, padding)

    def forward(self, x):
        x = self.conv_transpose(x)
        x = F.max_pool3d(x, 2)
        x = F.max_pool3d(x, 3)
        return torch.sum(x, dim=1, keepdim=True)


def get_inputs(batch_size=16, in_channels=32, depth=32, height=32, width=32, **sizes):
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs(in_channels=32, out_channels=64, **sizes):
    return [in_channels, out_channels, 5, 2, 2]


def get_flops(batch_size=16, in_channels=32, out_channels=64, depth=32, height=32, width=32):
    inputs = batch_size * in_channels * depth * height * width
    outputs = batch_size * out_channels * (2 * depth - 1) * (2 * height - 1) * (2 * width - 1)
    # 2 n - 1 values pool in twos, rounded down, to n - 1, and then in threes
    once = batch_size * out_channels * (depth - 1) * (height - 1) * (width - 1)
    twice = batch_size * out_channels * ((depth - 1) // 3) * ((height - 1) // 3) * ((width - 1) // 3)
    # transposed convolution with 125 taps; per output of it: bias;
    # per pooled value: window of 8; per value pooled again: window of 27, sum
    return 2 * inputs * out_channels * 125 + outputs + 8 * once + 28 * twice
