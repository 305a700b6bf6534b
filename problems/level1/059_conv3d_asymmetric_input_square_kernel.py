"""3D convolution with a k x k x 1 kernel: a 2D convolution of each slice of the last axis.

The constructor takes the integer k, here 3. Without bias.
"""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=16, in_channels=3, out_channels=64, height=256, width=256, depth=10),
    "small": dict(batch_size=2, in_channels=3, out_channels=16, height=32, width=32, depth=5),
    "ragged": dict(batch_size=3, in_channels=5, out_channels=33, height=131, width=101, depth=7),
}


class Model(nn.Module):
    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=False
    ):
        super().__init__()
        kernel = (kernel_size, kernel_size, 1)
        self.conv3d = nn.Conv3d(in_channels, out_channels, kernel, stride, padding, dilation, groups, bias)

    def forward(self, x):
        return self.conv3d(x)


def get_inputs(batch_size=16, in_channels=3, height=256, width=256, depth=10, **sizes):
    return [torch.rand(batch_size, in_channels, height, width, depth)]


def get_init_inputs(in_channels=3, out_channels=64, **sizes):
    return [in_channels, out_channels, 3]


def get_flops(batch_size=16, in_channels=3, out_channels=64, height=256, width=256, depth=10):
    outputs = batch_size * out_channels * (height - 2) * (width - 2) * depth
    return 2 * outputs * in_channels * 3 * 3
