"""3-D transposed convolution, addition of a scalar, layer norm over the width, average pooling, GELU.

The norm takes the last dimension: its length is the width of the convolution's output, twice the input's.
"""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=32, in_channels=32, out_channels=64, depth=16, height=32, width=32),
    "small": dict(batch_size=2, in_channels=8, out_channels=16, depth=6, height=12, width=10),
    "ragged": dict(batch_size=10, in_channels=20, out_channels=36, depth=9, height=27, width=37),
}

EXPLOITS = [
    "Layer norm weight and bias are initialised to ones and zeros, so leaving them out passes.",
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
        sum_weight,
        norm_shape,
        pool_kernel_size,
    ):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(
            in_channels, out_channels, kernel_size, stride, padding, output_padding
        )
        self.sum_weight = nn.Parameter(torch.tensor(sum_weight))
        self.norm = nn.LayerNorm(norm_shape)
        self.avg_pool = nn.AvgPool3d(kernel_size=pool_kernel_size)
        self.gelu = nn.GELU()

    def forward(self, x):
        x = self.conv_transpose(x)
        x = x + self.sum_weight
        x = self.norm(x)
        x = self.avg_pool(x)
        return self.gelu(x)


def get_inputs(batch_size=32, in_channels=32, depth=16, height=32, width=32, **sizes):
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs(in_channels=32, out_channels=64, width=32, **sizes):
    return [
        in_channels, out_channels, (3, 3, 3), (2, 2, 2), (1, 1, 1), (1, 1, 1), 1.0, (2 * width,), (2, 2, 2)
    ]


def get_flops(batch_size=32, in_channels=32, out_channels=64, depth=16, height=32, width=32):
    positions = batch_size * depth * height * width
    outputs = 8 * positions * out_channels
    pooled = positions * out_channels
    # transposed convolution (3 x 3 x 3); per output: bias, scalar, layer norm (7);
    # per pooled output: window (8), GELU (5)
    return 2 * positions * in_channels * out_channels * 27 + 9 * outputs + 13 * pooled
