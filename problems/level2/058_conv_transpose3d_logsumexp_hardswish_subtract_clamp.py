"""3-D transposed convolution, channel log-sum-exp, x * sigmoid(x + 3) / 6, minus a scalar, clamp."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=128, in_channels=3, out_channels=16, depth=16, height=32, width=32),
    "small": dict(batch_size=4, in_channels=3, out_channels=16, depth=8, height=12, width=12),
    "ragged": dict(batch_size=21, in_channels=5, out_channels=24, depth=13, height=31, width=37),
}

EXPLOITS = [
    "Before the subtraction every value is about 0.46, so the constant 0.46 - bias, clamped, passes at a "
    "tolerance of 1e-2.",
    "For about a third of the weight seeds the bias is below -0.55 or above 1.48: the clamp then makes every "
    "output exactly 1 or -1.",
]


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, bias_shape):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(in_channels, out_channels, kernel_size, stride, padding)
        self.bias = nn.Parameter(torch.randn(1, 1, 1, 1))

    def forward(self, x):
        x = self.conv_transpose(x)
        x = torch.logsumexp(x, dim=1, keepdim=True)
        x = x * torch.sigmoid(x + 3) / 6
        x = x - self.bias
        return torch.clamp(x, -1, 1)


def get_inputs(batch_size=128, in_channels=3, depth=16, height=32, width=32, **sizes):
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs(in_channels=3, out_channels=16, **sizes):
    return [in_channels, out_channels, 3, 2, 1, (1, 1, 1, 1)]


def get_flops(batch_size=128, in_channels=3, out_channels=16, depth=16, height=32, width=32):
    inputs = batch_size * in_channels * depth * height * width
    positions = batch_size * (2 * depth - 1) * (2 * height - 1) * (2 * width - 1)
    # transposed convolution with 27 taps; per output of it: bias, log-sum-exp (4);
    # per position: sum, sigmoid (4), product, division, subtraction, clamp (2)
    return 2 * inputs * out_channels * 27 + 5 * positions * out_channels + 10 * positions
