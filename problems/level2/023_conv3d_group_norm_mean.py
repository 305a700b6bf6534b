"""3-D convolution, group norm, mean over everything but the batch."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=128, in_channels=3, out_channels=24, depth=24, height=32, width=32, num_groups=8),
    "small": dict(batch_size=4, in_channels=3, out_channels=16, depth=10, height=16, width=20, num_groups=4),
    "ragged": dict(
        batch_size=51, in_channels=5, out_channels=42, depth=19, height=37, width=45, num_groups=6
    ),
}

EXPLOITS = [
    "Group norm's weight and bias are initialised to ones and zeros, so its output has mean 0 for any input: "
    "the result is rounding noise of about 1e-8, and zeros pass.",
]


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, num_groups):
        super().__init__()
        self.conv = nn.Conv3d(in_channels, out_channels, kernel_size)
        self.group_norm = nn.GroupNorm(num_groups, out_channels)

    def forward(self, x):
        x = self.conv(x)
        x = self.group_norm(x)
        return torch.mean(x, dim=(1, 2, 3, 4))


def get_inputs(batch_size=128, in_channels=3, depth=24, height=32, width=32, **sizes):
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs(in_channels=3, out_channels=24, num_groups=8, **sizes):
    return [in_channels, out_channels, 3, num_groups]


def get_flops(batch_size=128, in_channels=3, out_channels=24, depth=24, height=32, width=32, **sizes):
    outputs = batch_size * out_channels * (depth - 2) * (height - 2) * (width - 2)
    # convolution (3 x 3 x 3); per output: bias, group norm (7), mean
    return 2 * outputs * in_channels * 27 + 9 * outputs
