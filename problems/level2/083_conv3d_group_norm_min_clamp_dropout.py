"""3-D convolution, group norm, minimum with 0, clamp to [0, 1], dropout (active, p = 0.2): always zero."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=128, in_channels=3, out_channels=16, groups=8, depth=16, height=64, width=64),
    "small": dict(batch_size=4, in_channels=3, out_channels=16, groups=8, depth=10, height=16, width=16),
    "ragged": dict(batch_size=13, in_channels=5, out_channels=21, groups=7, depth=17, height=65, width=63),
}

EXPLOITS = [
    "The minimum with 0 followed by the clamp from 0 upwards is exactly 0 for every input, so zeros pass.",
]

TRIVIAL = dict.fromkeys(
    ["zeros", "mean", "first sample", "other output", "previous output"],
    "The minimum with 0, clamped to at least 0, is 0 for every input.",
)


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, groups, min_value, max_value, dropout_p):
        super().__init__()
        self.conv = nn.Conv3d(in_channels, out_channels, kernel_size)
        self.norm = nn.GroupNorm(groups, out_channels)
        self.min_value = min_value
        self.max_value = max_value
        self.dropout = nn.Dropout(dropout_p)

    def forward(self, x):
        x = self.conv(x)
        x = self.norm(x)
        x = torch.clamp(x, max=self.min_value)
        x = torch.clamp(x, self.min_value, self.max_value)
        return self.dropout(x)


def get_inputs(batch_size=128, in_channels=3, depth=16, height=64, width=64, **sizes):
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs(in_channels=3, out_channels=16, groups=8, **sizes):
    return [in_channels, out_channels, 3, groups, 0.0, 1.0, 0.2]


def get_flops(batch_size=128, in_channels=3, out_channels=16, depth=16, height=64, width=64, **sizes):
    outputs = batch_size * out_channels * (depth - 2) * (height - 2) * (width - 2)
    # convolution with 27 taps; per output: bias, group norm (7), minimum, clamp (2),
    # dropout (mask and scaling)
    return 2 * outputs * in_channels * 27 + 13 * outputs
