"""2-D transposed convolution, batch norm, tanh, max pooling, group norm.

The argument ``groups`` is not used; the convolution has one group.
"""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=512, in_channels=64, out_channels=128, height=32, width=32, num_groups=8),
    "small": dict(batch_size=4, in_channels=16, out_channels=32, height=12, width=16, num_groups=4),
    "ragged": dict(batch_size=101, in_channels=40, out_channels=90, height=29, width=37, num_groups=6),
}

EXPLOITS = [
    "Both norms' weight and bias are initialised to ones and zeros, so leaving them out passes.",
]


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, groups, num_groups):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose2d(in_channels, out_channels, kernel_size, stride, padding)
        self.batch_norm = nn.BatchNorm2d(out_channels)
        self.tanh = nn.Tanh()
        self.max_pool = nn.MaxPool2d(kernel_size=2, stride=2)
        self.group_norm = nn.GroupNorm(num_groups=num_groups, num_channels=out_channels)

    def forward(self, x):
        x = self.conv_transpose(x)
        x = self.batch_norm(x)
        x = self.tanh(x)
        x = self.max_pool(x)
        return self.group_norm(x)


def get_inputs(batch_size=512, in_channels=64, height=32, width=32, **sizes):
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs(in_channels=64, out_channels=128, num_groups=8, **sizes):
    return [in_channels, out_channels, 5, 1, 1, 8, num_groups]


def get_flops(batch_size=512, in_channels=64, out_channels=128, height=32, width=32, **sizes):
    positions = batch_size * height * width
    outputs = batch_size * out_channels * (height + 2) * (width + 2)
    pooled = batch_size * out_channels * ((height + 2) // 2) * ((width + 2) // 2)
    matmul = 2 * positions * in_channels * out_channels * 25
    # transposed convolution (5 x 5); per output: bias, batch norm (7), tanh;
    # per pooled output: window (4), group norm (7)
    return matmul + 9 * outputs + 11 * pooled
