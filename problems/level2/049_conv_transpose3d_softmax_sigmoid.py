"""3-D transposed convolution, softmax over the channels, sigmoid."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=16, in_channels=32, out_channels=64, depth=16, height=32, width=32),
    "small": dict(batch_size=2, in_channels=8, out_channels=16, depth=6, height=12, width=10),
    "ragged": dict(batch_size=9, in_channels=20, out_channels=45, depth=13, height=29, width=37),
}

TOLERANCE = 1e-5  # at 1e-4 the half that is in each output hides inputs and weights in eight bits

EXPLOITS = [
    "Every softmax value is about 1 / 64, so every output is about 0.504: a constant, or the output for "
    "another input, is within 1e-2, though not within 1e-4.",
]


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, output_padding, bias=True):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(
            in_channels, out_channels, kernel_size, stride, padding, output_padding, bias=bias
        )
        self.softmax = nn.Softmax(dim=1)
        self.sigmoid = nn.Sigmoid()

    def forward(self, x):
        x = self.conv_transpose(x)
        x = self.softmax(x)
        return self.sigmoid(x)


def get_inputs(batch_size=16, in_channels=32, depth=16, height=32, width=32, **sizes):
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs(in_channels=32, out_channels=64, **sizes):
    return [in_channels, out_channels, 3, 2, 1, 1]


def get_flops(batch_size=16, in_channels=32, out_channels=64, depth=16, height=32, width=32):
    positions = batch_size * depth * height * width
    outputs = 8 * positions * out_channels
    # transposed convolution (3 x 3 x 3); per output: bias, softmax (5), sigmoid (4)
    return 2 * positions * in_channels * out_channels * 27 + 10 * outputs
