"""2-D convolution, subtraction of a constant, hardswish, max pooling, Mish."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=128, in_channels=64, out_channels=128, height=128, width=128, subtract_value=0.5),
    "small": dict(batch_size=4, in_channels=16, out_channels=32, height=32, width=40, subtract_value=0.5),
    "ragged": dict(
        batch_size=33, in_channels=60, out_channels=100, height=111, width=141, subtract_value=0.5
    ),
}

EXPLOITS = [
    "The differences v stay between -3 and 3 on the published draw, where hardswish clamps nothing: "
    "v * (v + 3) / 6 passes.",
]


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, subtract_value, pool_kernel_size):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.subtract_value = subtract_value
        self.pool = nn.MaxPool2d(pool_kernel_size)

    def forward(self, x):
        x = self.conv(x)
        x = x - self.subtract_value
        x = F.hardswish(x)
        x = self.pool(x)
        return F.mish(x)


def get_inputs(batch_size=128, in_channels=64, height=128, width=128, **sizes):
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs(in_channels=64, out_channels=128, subtract_value=0.5, **sizes):
    return [in_channels, out_channels, 3, subtract_value, 2]


def get_flops(batch_size=128, in_channels=64, out_channels=128, height=128, width=128, **sizes):
    outputs = batch_size * out_channels * (height - 2) * (width - 2)
    pooled = batch_size * out_channels * ((height - 2) // 2) * ((width - 2) // 2)
    # convolution (3 x 3); per output: bias, subtraction, hardswish (5);
    # per pooled output: window (4), Mish (5)
    return 2 * outputs * in_channels * 9 + 7 * outputs + 9 * pooled
