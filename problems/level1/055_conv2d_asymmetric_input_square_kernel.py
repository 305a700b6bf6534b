"""2D convolution of a wide image, 3 x 3 kernel, without bias."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=8, in_channels=64, out_channels=128, height=512, width=1024),
    "small": dict(batch_size=2, in_channels=16, out_channels=32, height=32, width=64),
    "ragged": dict(batch_size=3, in_channels=37, out_channels=75, height=131, width=259),
    "vision": dict(batch_size=4, in_channels=64, out_channels=128, height=270, width=480),
}


class Model(nn.Module):
    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=False
    ):
        super().__init__()
        self.conv2d = nn.Conv2d(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias
        )

    def forward(self, x):
        return self.conv2d(x)


def get_inputs(batch_size=8, in_channels=64, height=512, width=1024, **sizes):
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs(in_channels=64, out_channels=128, **sizes):
    return [in_channels, out_channels, 3]


def get_flops(batch_size=8, in_channels=64, out_channels=128, height=512, width=1024):
    outputs = batch_size * out_channels * (height - 2) * (width - 2)
    return 2 * outputs * in_channels * 3 * 3
