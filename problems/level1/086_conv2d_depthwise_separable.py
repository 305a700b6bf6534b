"""Depthwise 3 x 3 convolution, then a 1 x 1 convolution across channels, both without bias."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=16, in_channels=64, out_channels=128, height=512, width=512),
    "small": dict(batch_size=2, in_channels=16, out_channels=32, height=48, width=48),
    "ragged": dict(batch_size=3, in_channels=37, out_channels=75, height=131, width=131),
    "vision": dict(batch_size=64, in_channels=128, out_channels=128, height=56, width=56),
}


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, bias=False):
        super().__init__()
        self.depthwise = nn.Conv2d(
            in_channels, in_channels, kernel_size, stride, padding, dilation, groups=in_channels, bias=bias
        )
        self.pointwise = nn.Conv2d(in_channels, out_channels, kernel_size=1, bias=bias)

    def forward(self, x):
        return self.pointwise(self.depthwise(x))


def get_inputs(batch_size=16, in_channels=64, height=512, width=512, **sizes):
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs(in_channels=64, out_channels=128, **sizes):
    return [in_channels, out_channels, 3, 1, 1, 1]


def get_flops(batch_size=16, in_channels=64, out_channels=128, height=512, width=512):
    # padding keeps the size; 3 x 3 taps a channel, then a product across channels
    between = batch_size * in_channels * height * width
    return 2 * between * 3 * 3 + 2 * between * out_channels
