"""Depthwise 2D convolution of a wide image, 3 x 7 kernel, without bias.

The model ignores ``out_channels`` and ``groups``: both are the number of input channels.
"""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=32, in_channels=128, height=128, width=256),
    "small": dict(batch_size=2, in_channels=16, height=32, width=64),
    "ragged": dict(batch_size=5, in_channels=37, height=67, width=131),
}


class Model(nn.Module):
    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size_h,
        kernel_size_w,
        stride_h=1,
        stride_w=1,
        padding_h=0,
        padding_w=0,
        dilation_h=1,
        dilation_w=1,
        groups=1,
        bias=False,
    ):
        super().__init__()
        self.conv2d = nn.Conv2d(
            in_channels,
            in_channels,
            kernel_size=(kernel_size_h, kernel_size_w),
            stride=(stride_h, stride_w),
            padding=(padding_h, padding_w),
            dilation=(dilation_h, dilation_w),
            groups=in_channels,
            bias=bias,
        )

    def forward(self, x):
        return self.conv2d(x)


def get_inputs(batch_size=32, in_channels=128, height=128, width=256):
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs(in_channels=128, **sizes):
    return [in_channels, in_channels, 3, 7, 1, 1, 0, 0, 1, 1, in_channels]


def get_flops(batch_size=32, in_channels=128, height=128, width=256):
    outputs = batch_size * in_channels * (height - 2) * (width - 6)
    return 2 * outputs * 3 * 7
