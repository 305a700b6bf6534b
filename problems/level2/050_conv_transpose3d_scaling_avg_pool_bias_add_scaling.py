"""3-D transposed convolution, scaling, average pooling, addition of a bias of its own, scaling."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=128, in_channels=3, out_channels=16, depth=16, height=32, width=32),
    "small": dict(batch_size=4, in_channels=3, out_channels=16, depth=6, height=12, width=10),
    "ragged": dict(batch_size=50, in_channels=5, out_channels=21, depth=14, height=29, width=37),
}

EXPLOITS = [
    "The second scale is initialised to 1, so leaving it out passes.",
]


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, scale1, scale2, bias_shape):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(in_channels, out_channels, kernel_size, stride, padding)
        self.scale1 = nn.Parameter(torch.tensor(scale1))
        self.avg_pool = nn.AvgPool3d(kernel_size=2)
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scale2 = nn.Parameter(torch.tensor(scale2))

    def forward(self, x):
        x = self.conv_transpose(x)
        x = x * self.scale1
        x = self.avg_pool(x)
        x = x + self.bias
        return x * self.scale2


def get_inputs(batch_size=128, in_channels=3, depth=16, height=32, width=32, **sizes):
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs(in_channels=3, out_channels=16, **sizes):
    return [in_channels, out_channels, 3, 2, 1, 0.5, 1.0, (out_channels, 1, 1, 1)]


def get_flops(batch_size=128, in_channels=3, out_channels=16, depth=16, height=32, width=32):
    positions = batch_size * depth * height * width
    maps = batch_size * out_channels
    outputs = maps * (2 * depth - 1) * (2 * height - 1) * (2 * width - 1)
    pooled = maps * (depth - 1) * (height - 1) * (width - 1)
    # transposed convolution (3 x 3 x 3); per output: bias, scaling;
    # per pooled output: window (8), second bias, scaling
    return 2 * positions * in_channels * out_channels * 27 + 2 * outputs + 10 * pooled
