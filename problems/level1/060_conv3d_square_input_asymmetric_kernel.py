"""3D convolution of a cube, 3 x 5 x 7 kernel, without bias."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=16, in_channels=3, out_channels=64, depth=64, height=64, width=64),
    "small": dict(batch_size=2, in_channels=3, out_channels=16, depth=20, height=20, width=20),
    "ragged": dict(batch_size=3, in_channels=5, out_channels=33, depth=47, height=47, width=47),
}


class Model(nn.Module):
    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=False
    ):
        super().__init__()
        self.conv3d = nn.Conv3d(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias
        )

    def forward(self, x):
        return self.conv3d(x)


def get_inputs(batch_size=16, in_channels=3, depth=64, height=64, width=64, **sizes):
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs(in_channels=3, out_channels=64, **sizes):
    return [in_channels, out_channels, (3, 5, 7)]


def get_flops(batch_size=16, in_channels=3, out_channels=64, depth=64, height=64, width=64):
    outputs = batch_size * out_channels * (depth - 2) * (height - 4) * (width - 6)
    return 2 * outputs * in_channels * 3 * 5 * 7
