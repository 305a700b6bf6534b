"""3-D convolution, scaling per channel, tanh, a second scaling per channel, sigmoid.

Both scales are parameters; the second is called ``bias``. The argument ``scaling_factor`` is not used.
"""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=128, in_channels=3, out_channels=16, depth=16, height=64, width=64),
    "small": dict(batch_size=4, in_channels=3, out_channels=16, depth=10, height=16, width=20),
    "ragged": dict(batch_size=50, in_channels=5, out_channels=21, depth=19, height=45, width=53),
}


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, scaling_factor, bias_shape):
        super().__init__()
        self.conv = nn.Conv3d(in_channels, out_channels, kernel_size)
        self.scaling_factor = nn.Parameter(torch.randn(bias_shape))
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x):
        x = self.conv(x)
        x = x * self.scaling_factor
        x = torch.tanh(x)
        x = x * self.bias
        return torch.sigmoid(x)


def get_inputs(batch_size=128, in_channels=3, depth=16, height=64, width=64, **sizes):
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs(in_channels=3, out_channels=16, **sizes):
    return [in_channels, out_channels, 3, 2, (out_channels, 1, 1, 1)]


def get_flops(batch_size=128, in_channels=3, out_channels=16, depth=16, height=64, width=64):
    outputs = batch_size * out_channels * (depth - 2) * (height - 2) * (width - 2)
    # convolution (3 x 3 x 3); per output: bias, scaling, tanh, scaling, sigmoid (4)
    return 2 * outputs * in_channels * 27 + 8 * outputs
