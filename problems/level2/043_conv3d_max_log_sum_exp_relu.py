"""3-D convolution, max pooling, log-sum-exp over the channels, ReLU."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=4, in_channels=32, out_channels=64, depth=32, height=128, width=128),
    "small": dict(batch_size=2, in_channels=8, out_channels=16, depth=8, height=16, width=20),
    "ragged": dict(batch_size=3, in_channels=28, out_channels=50, depth=21, height=75, width=93),
}

EXPLOITS = [
    "The log-sum-exp over 64 channels is about 4.5 on the published draw, so leaving the ReLU out passes.",
]


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding):
        super().__init__()
        self.conv = nn.Conv3d(in_channels, out_channels, kernel_size, stride, padding)
        self.max_pool = nn.MaxPool3d(kernel_size=2, stride=2)

    def forward(self, x):
        x = self.conv(x)
        x = self.max_pool(x)
        x = torch.logsumexp(x, dim=1, keepdim=True)
        return torch.relu(x)


def get_inputs(batch_size=4, in_channels=32, depth=32, height=128, width=128, **sizes):
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs(in_channels=32, out_channels=64, **sizes):
    return [in_channels, out_channels, 3, 1, 1]


def get_flops(batch_size=4, in_channels=32, out_channels=64, depth=32, height=128, width=128):
    outputs = batch_size * out_channels * depth * height * width
    positions = batch_size * (depth // 2) * (height // 2) * (width // 2)
    pooled = positions * out_channels
    # convolution (3 x 3 x 3, same size); per output: bias; per pooled output: window (8),
    # log-sum-exp (4); per position: comparison
    return 2 * outputs * in_channels * 27 + outputs + 12 * pooled + positions
