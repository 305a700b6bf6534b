"""2-D convolution, subtraction of a constant, tanh, subtraction of a constant, average pooling."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(
        batch_size=128, in_channels=64, out_channels=128, height=128, width=128, subtract1_value=0.5,
        subtract2_value=0.2
    ),
    "small": dict(
        batch_size=4, in_channels=16, out_channels=32, height=32, width=40, subtract1_value=0.5,
        subtract2_value=0.2
    ),
    "ragged": dict(
        batch_size=33, in_channels=60, out_channels=100, height=111, width=141, subtract1_value=0.5,
        subtract2_value=0.2
    ),
}


class Model(nn.Module):
    def __init__(
        self, in_channels, out_channels, kernel_size, subtract1_value, subtract2_value, kernel_size_pool
    ):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.subtract1_value = subtract1_value
        self.subtract2_value = subtract2_value
        self.avgpool = nn.AvgPool2d(kernel_size_pool)

    def forward(self, x):
        x = self.conv(x)
        x = x - self.subtract1_value
        x = torch.tanh(x)
        x = x - self.subtract2_value
        return self.avgpool(x)


def get_inputs(batch_size=128, in_channels=64, height=128, width=128, **sizes):
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs(in_channels=64, out_channels=128, subtract1_value=0.5, subtract2_value=0.2, **sizes):
    return [in_channels, out_channels, 3, subtract1_value, subtract2_value, 2]


def get_flops(batch_size=128, in_channels=64, out_channels=128, height=128, width=128, **sizes):
    outputs = batch_size * out_channels * (height - 2) * (width - 2)
    pooled = batch_size * out_channels * ((height - 2) // 2) * ((width - 2) // 2)
    # convolution (3 x 3); per output: bias, subtraction, tanh, subtraction; per pooled output: window (4)
    return 2 * outputs * in_channels * 9 + 4 * outputs + 4 * pooled
