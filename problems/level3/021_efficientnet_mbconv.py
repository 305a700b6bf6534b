"""EfficientNet MBConv block: 1x1 expansion, strided depthwise convolution, 1x1 projection."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=10, in_channels=112, out_channels=192, height=224, width=224),
    "small": dict(batch_size=2, in_channels=112, out_channels=192, height=28, width=28),
}

EXPLOITS = [
    "BatchNorm weights and biases are initialised to ones and zeros, so leaving them out passes.",
]


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, expand_ratio):
        super().__init__()
        hidden = in_channels * expand_ratio
        self.expand_conv = nn.Sequential(
            nn.Conv2d(in_channels, hidden, 1, bias=False),
            nn.BatchNorm2d(hidden),
            nn.ReLU6(),
        )
        self.depthwise_conv = nn.Sequential(
            nn.Conv2d(
                hidden,
                hidden,
                kernel_size,
                stride=stride,
                padding=(kernel_size - 1) // 2,
                groups=hidden,
                bias=False,
            ),
            nn.BatchNorm2d(hidden),
            nn.ReLU6(),
        )
        self.project_conv = nn.Sequential(
            nn.Conv2d(hidden, out_channels, 1, bias=False),
            nn.BatchNorm2d(out_channels),
        )

    def forward(self, x):
        return self.project_conv(self.depthwise_conv(self.expand_conv(x)))


def get_inputs(batch_size=10, in_channels=112, height=224, width=224, **sizes):
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs(in_channels=112, out_channels=192, **sizes):
    return [in_channels, out_channels, 5, 2, 6]


def get_flops(batch_size=10, in_channels=112, out_channels=192, height=224, width=224):
    hidden = in_channels * 6
    before = batch_size * height * width
    after = batch_size * ((height + 1) // 2) * ((width + 1) // 2)
    # per output of a convolution: its taps, norm (7), ReLU6 (2) except after the projection
    expand = before * hidden * (2 * in_channels + 9)
    depthwise = after * hidden * (2 * 5**2 + 9)
    project = after * out_channels * (2 * hidden + 7)
    return expand + depthwise + project
