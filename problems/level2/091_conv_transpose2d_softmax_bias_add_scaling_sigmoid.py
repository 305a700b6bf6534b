"""2-D transposed convolution, softmax over the channels, bias a channel, scaling by a constant, sigmoid."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=128, in_channels=64, out_channels=128, height=64, width=64),
    "small": dict(batch_size=4, in_channels=16, out_channels=32, height=16, width=16),
    "ragged": dict(batch_size=30, in_channels=48, out_channels=99, height=61, width=53),
}

EXPLOITS = [
    "Every softmax value is about 1 / out_channels, and putting that constant in its place passes at a "
    "tolerance of 1e-2.",
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
        x = torch.softmax(x, dim=1)
        x = x + self.bias
        x = x * self.scaling_factor
        return torch.sigmoid(x)


def get_inputs(batch_size=128, in_channels=64, height=64, width=64, **sizes):
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs(in_channels=64, out_channels=128, **sizes):
    return [in_channels, out_channels, 4, 2, 1, 1, (out_channels, 1, 1), 2.0]


def get_flops(batch_size=128, in_channels=64, out_channels=128, height=64, width=64):
    inputs = batch_size * in_channels * height * width
    outputs = batch_size * out_channels * (2 * height + 1) * (2 * width + 1)
    # transposed convolution with 4 x 4 taps; per output: bias, softmax (5), sum, scaling, sigmoid (4)
    return 2 * inputs * out_channels * 16 + 12 * outputs
