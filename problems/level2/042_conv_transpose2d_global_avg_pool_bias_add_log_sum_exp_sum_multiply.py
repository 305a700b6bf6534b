"""2-D transposed convolution, global average, bias, log-sum-exp over the channels, sum, scaling by 10."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=16, in_channels=64, out_channels=128, height=512, width=512),
    "small": dict(batch_size=4, in_channels=16, out_channels=32, height=24, width=20),
    "ragged": dict(batch_size=5, in_channels=60, out_channels=90, height=259, width=301),
}

EXPLOITS = [
    "The averages over all positions hardly differ between samples drawn from [0, 1): for given weights one "
    "constant, or the output for another input, is within 1e-4 of every output.",
]


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, bias_shape):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose2d(in_channels, out_channels, kernel_size)
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x):
        x = self.conv_transpose(x)
        x = torch.mean(x, dim=(2, 3), keepdim=True)
        x = x + self.bias
        x = torch.logsumexp(x, dim=1, keepdim=True)
        x = torch.sum(x, dim=(2, 3))
        return x * 10.0


def get_inputs(batch_size=16, in_channels=64, height=512, width=512, **sizes):
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs(in_channels=64, out_channels=128, **sizes):
    return [in_channels, out_channels, 3, (out_channels, 1, 1)]


def get_flops(batch_size=16, in_channels=64, out_channels=128, height=512, width=512):
    positions = batch_size * height * width
    maps = batch_size * out_channels
    outputs = maps * (height + 2) * (width + 2)
    matmul = 2 * positions * in_channels * out_channels * 9
    # transposed convolution (3 x 3); per output: bias, mean; per channel of a sample: bias,
    # log-sum-exp (4); per sample: sum, scaling
    return matmul + 2 * outputs + 5 * maps + 2 * batch_size
