"""2D convolution of a square image, 5 x 9 kernel, padding (2, 4), dilation (2, 3), without bias."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=8, in_channels=32, out_channels=64, height=512, width=512),
    "small": dict(batch_size=2, in_channels=16, out_channels=32, height=48, width=48),
    "ragged": dict(batch_size=3, in_channels=19, out_channels=37, height=131, width=131),
}


class Model(nn.Module):
    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=(0, 0), dilation=(1, 1), bias=False
    ):
        super().__init__()
        self.conv2d = nn.Conv2d(in_channels, out_channels, kernel_size, stride, padding, dilation, bias=bias)

    def forward(self, x):
        return self.conv2d(x)


def get_inputs(batch_size=8, in_channels=32, height=512, width=512, **sizes):
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs(in_channels=32, out_channels=64, **sizes):
    return [in_channels, out_channels, (5, 9), 1, (2, 4), (2, 3)]


def get_flops(batch_size=8, in_channels=32, out_channels=64, height=512, width=512):
    # the dilated kernel spans 9 x 25; padding gives back 4 and 8
    outputs = batch_size * out_channels * (height - 4) * (width - 16)
    return 2 * outputs * in_channels * 5 * 9
