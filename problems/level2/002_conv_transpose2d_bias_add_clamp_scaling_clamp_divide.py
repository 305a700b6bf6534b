"""2-D transposed convolution, bias, clamp to [0, 1], scaling, clamp to [0, 1], division by the scale."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=128, in_channels=64, out_channels=64, height=128, width=128, scaling_factor=2.0),
    "small": dict(batch_size=4, in_channels=16, out_channels=16, height=24, width=20, scaling_factor=2.0),
    "ragged": dict(batch_size=33, in_channels=40, out_channels=50, height=63, width=101, scaling_factor=3.0),
}

CENTRED = 4.0  # by initial weights its own bias clamps half of the channels


class Model(nn.Module):
    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride,
        padding,
        output_padding,
        bias_shape,
        scaling_factor,
    ):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose2d(
            in_channels, out_channels, kernel_size, stride, padding, output_padding
        )
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scaling_factor = scaling_factor

    def forward(self, x):
        x = self.conv_transpose(x)
        x = x + self.bias
        x = torch.clamp(x, min=0.0, max=1.0)
        x = x * self.scaling_factor
        x = torch.clamp(x, min=0.0, max=1.0)
        return x / self.scaling_factor


def get_inputs(batch_size=128, in_channels=64, height=128, width=128, **sizes):
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs(in_channels=64, out_channels=64, scaling_factor=2.0, **sizes):
    return [in_channels, out_channels, 3, 2, 1, 1, (out_channels, 1, 1), scaling_factor]


def get_flops(batch_size=128, in_channels=64, out_channels=64, height=128, width=128, **sizes):
    positions = batch_size * height * width
    outputs = batch_size * out_channels * (2 * height) * (2 * width)
    # transposed convolution (3 x 3); per output: bias, second bias, clamp (2), scaling, clamp (2), division
    return 2 * positions * in_channels * out_channels * 9 + 8 * outputs
