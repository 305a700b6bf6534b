"""3-D convolution, minimum over the depth, softmax over the channels."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=128, in_channels=3, out_channels=24, depth=24, height=32, width=32),
    "small": dict(batch_size=4, in_channels=3, out_channels=16, depth=10, height=16, width=20),
    "ragged": dict(batch_size=51, in_channels=5, out_channels=37, depth=19, height=37, width=45),
}


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, dim):
        super().__init__()
        self.conv = nn.Conv3d(in_channels, out_channels, kernel_size)
        self.dim = dim

    def forward(self, x):
        x = self.conv(x)
        x = torch.min(x, dim=self.dim)[0]
        return torch.softmax(x, dim=1)


def get_inputs(batch_size=128, in_channels=3, depth=24, height=32, width=32, **sizes):
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs(in_channels=3, out_channels=24, **sizes):
    return [in_channels, out_channels, 3, 2]


def get_flops(batch_size=128, in_channels=3, out_channels=24, depth=24, height=32, width=32):
    minima = batch_size * out_channels * (height - 2) * (width - 2)
    outputs = minima * (depth - 2)
    # convolution (3 x 3 x 3); per output: bias, minimum; per minimum: softmax (5)
    return 2 * outputs * in_channels * 27 + 2 * outputs + 5 * minima
