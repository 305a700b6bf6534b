"""2-D convolution, bias of its own, scaling per channel, sigmoid, group norm."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=128, in_channels=8, out_channels=32, height=256, width=256, num_groups=8),
    "small": dict(batch_size=4, in_channels=8, out_channels=32, height=32, width=40, num_groups=4),
    "ragged": dict(batch_size=33, in_channels=7, out_channels=42, height=129, width=151, num_groups=6),
}

EXPLOITS = [
    "Group norm weight and bias are initialised to ones and zeros, so leaving them out passes.",
]


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, num_groups, bias_shape, scale_shape):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scale = nn.Parameter(torch.randn(scale_shape))
        self.group_norm = nn.GroupNorm(num_groups, out_channels)

    def forward(self, x):
        x = self.conv(x)
        x = x + self.bias
        x = x * self.scale
        x = torch.sigmoid(x)
        return self.group_norm(x)


def get_inputs(batch_size=128, in_channels=8, height=256, width=256, **sizes):
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs(in_channels=8, out_channels=32, num_groups=8, **sizes):
    return [in_channels, out_channels, 3, num_groups, (out_channels, 1, 1), (out_channels, 1, 1)]


def get_flops(batch_size=128, in_channels=8, out_channels=32, height=256, width=256, **sizes):
    outputs = batch_size * out_channels * (height - 2) * (width - 2)
    # convolution (3 x 3); per output: bias, second bias, scaling, sigmoid (4), group norm (7)
    return 2 * outputs * in_channels * 9 + 14 * outputs
