"""3-D transposed convolution, leaky ReLU, product with a parameter a channel, leaky ReLU, max pooling."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=16, in_channels=16, out_channels=32, depth=16, height=32, width=32),
    "small": dict(batch_size=2, in_channels=16, out_channels=32, depth=8, height=10, width=10),
    "ragged": dict(batch_size=5, in_channels=24, out_channels=45, depth=13, height=31, width=37),
}

CENTRED = 1.0  # by initial weights some places of a window are never the largest


class Model(nn.Module):
    def __init__(
        self, in_channels, out_channels, kernel_size, stride, padding, output_padding, multiplier_shape
    ):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(
            in_channels, out_channels, kernel_size, stride, padding, output_padding
        )
        self.multiplier = nn.Parameter(torch.randn(multiplier_shape))

    def forward(self, x):
        x = self.conv_transpose(x)
        x = F.leaky_relu(x, 0.2)
        x = x * self.multiplier
        x = F.leaky_relu(x, 0.2)
        return F.max_pool3d(x, 2)


def get_inputs(batch_size=16, in_channels=16, depth=16, height=32, width=32, **sizes):
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs(in_channels=16, out_channels=32, **sizes):
    return [in_channels, out_channels, 3, 2, 1, 1, (out_channels, 1, 1, 1)]


def get_flops(batch_size=16, in_channels=16, out_channels=32, depth=16, height=32, width=32):
    inputs = batch_size * in_channels * depth * height * width
    pooled = batch_size * out_channels * depth * height * width
    outputs = 8 * pooled
    # transposed convolution with 27 taps; per output of it: bias, product, two leaky ReLUs (2 each);
    # per pooled value: window of 8
    return 2 * inputs * out_channels * 27 + 6 * outputs + 8 * pooled
