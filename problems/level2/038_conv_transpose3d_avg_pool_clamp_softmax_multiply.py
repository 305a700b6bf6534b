"""Average pooling, 3-D transposed convolution, clamp, softmax over the positions, scaling per channel."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=32, in_channels=32, out_channels=64, depth=32, height=64, width=64),
    "small": dict(batch_size=2, in_channels=8, out_channels=16, depth=8, height=8, width=12),
    "ragged": dict(batch_size=10, in_channels=20, out_channels=42, depth=11, height=37, width=29),
}

CENTRED = 1.0  # by initial weights some maps are clamped as a whole

EXPLOITS = [
    "The softmax runs over 131072 positions, so every published output is about 7.6e-6: an absolute "
    "tolerance of 1e-4 accepts zeros.",
    "The scale is initialised to ones, so leaving it out passes.",
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
        clamp_min,
        clamp_max,
    ):
        super().__init__()
        self.avg_pool = nn.AvgPool3d(pool_kernel_size)
        self.conv_transpose = nn.ConvTranspose3d(
            in_channels, out_channels, kernel_size, stride, padding, output_padding
        )
        self.clamp_min = clamp_min
        self.clamp_max = clamp_max
        self.scale = nn.Parameter(torch.ones(1, out_channels, 1, 1, 1))

    def forward(self, x):
        x = self.avg_pool(x)
        x = self.conv_transpose(x)
        x = torch.clamp(x, self.clamp_min, self.clamp_max)
        x = torch.softmax(x.flatten(2), dim=2).view_as(x)
        return x * self.scale


def get_inputs(batch_size=32, in_channels=32, depth=32, height=64, width=64, **sizes):
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs(in_channels=32, out_channels=64, **sizes):
    return [in_channels, out_channels, 3, 2, 1, 1, 2, 0.0, 1.0]


def get_flops(batch_size=32, in_channels=32, out_channels=64, depth=32, height=64, width=64):
    pooled = batch_size * (depth // 2) * (height // 2) * (width // 2)
    outputs = 8 * pooled * out_channels
    # transposed convolution (3 x 3 x 3) of the pooled input; per pooled input: window (8);
    # per output: bias, clamp (2), softmax (5), scaling
    return 2 * pooled * in_channels * out_channels * 27 + 8 * pooled * in_channels + 9 * outputs
