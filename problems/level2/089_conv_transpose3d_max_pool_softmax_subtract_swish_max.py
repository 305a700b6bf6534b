"""3-D transposed convolution, max pooling, channel softmax, minus a parameter, swish, channel maximum."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=128, in_channels=3, out_channels=16, depth=16, height=32, width=32),
    "small": dict(batch_size=4, in_channels=3, out_channels=16, depth=8, height=12, width=12),
    "ragged": dict(batch_size=21, in_channels=5, out_channels=24, depth=13, height=31, width=37),
}

EXPLOITS = [
    "Every softmax value is about 1 / out_channels, so the most negative entry of subtract decides: one "
    "constant passes at a tolerance of 1e-2.",
]


class Model(nn.Module):
    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride,
        padding,
        output_padding,
        pool_kernel_size,
        pool_stride,
        pool_padding,
    ):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(
            in_channels, out_channels, kernel_size, stride, padding, output_padding
        )
        self.pool_kernel_size = pool_kernel_size
        self.pool_stride = pool_stride
        self.pool_padding = pool_padding
        self.subtract = nn.Parameter(torch.randn(out_channels))

    def forward(self, x):
        x = self.conv_transpose(x)
        x = F.max_pool3d(x, self.pool_kernel_size, self.pool_stride, self.pool_padding)
        x = torch.softmax(x, dim=1)
        x = x - self.subtract.view(1, -1, 1, 1, 1)
        x = torch.sigmoid(x) * x
        return torch.max(x, dim=1).values


def get_inputs(batch_size=128, in_channels=3, depth=16, height=32, width=32, **sizes):
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs(in_channels=3, out_channels=16, **sizes):
    return [in_channels, out_channels, 3, 2, 1, 1, 2, 2, 0]


def get_flops(batch_size=128, in_channels=3, out_channels=16, depth=16, height=32, width=32):
    inputs = batch_size * in_channels * depth * height * width
    pooled = batch_size * out_channels * depth * height * width
    outputs = 8 * pooled
    # transposed convolution with 27 taps; per output of it: bias; per pooled value: window of 8,
    # softmax (5), subtraction, sigmoid (4), product, maximum
    return 2 * inputs * out_channels * 27 + outputs + 20 * pooled
