"""SqueezeNet fire module: 1x1 convolution, then 1x1 and 3x3 ones side by side, each with ReLU."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(
        batch_size=128,
        in_channels=3,
        squeeze_channels=6,
        expand1x1_channels=64,
        expand3x3_channels=64,
        height=256,
        width=256,
    ),
    "small": dict(
        batch_size=4,
        in_channels=3,
        squeeze_channels=6,
        expand1x1_channels=64,
        expand3x3_channels=64,
        height=64,
        width=64,
    ),
}

CENTRED = 2.0  # by initial weights some units are zero for all inputs


class Model(nn.Module):
    def __init__(self, in_channels, squeeze_channels, expand1x1_channels, expand3x3_channels):
        super().__init__()
        self.squeeze = nn.Conv2d(in_channels, squeeze_channels, 1)
        self.squeeze_activation = nn.ReLU()
        self.expand1x1 = nn.Conv2d(squeeze_channels, expand1x1_channels, 1)
        self.expand1x1_activation = nn.ReLU()
        self.expand3x3 = nn.Conv2d(squeeze_channels, expand3x3_channels, 3, padding=1)
        self.expand3x3_activation = nn.ReLU()

    def forward(self, x):
        x = self.squeeze_activation(self.squeeze(x))
        pointwise = self.expand1x1_activation(self.expand1x1(x))
        spatial = self.expand3x3_activation(self.expand3x3(x))
        return torch.cat([pointwise, spatial], dim=1)


def get_inputs(batch_size=128, in_channels=3, height=256, width=256, **sizes):
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs(
    in_channels=3, squeeze_channels=6, expand1x1_channels=64, expand3x3_channels=64, **sizes
):
    return [in_channels, squeeze_channels, expand1x1_channels, expand3x3_channels]


def get_flops(
    batch_size=128,
    in_channels=3,
    squeeze_channels=6,
    expand1x1_channels=64,
    expand3x3_channels=64,
    height=256,
    width=256,
):
    # per output of a convolution: its taps, bias, comparison
    squeeze = squeeze_channels * (2 * in_channels + 2)
    pointwise = expand1x1_channels * (2 * squeeze_channels + 2)
    spatial = expand3x3_channels * (2 * 9 * squeeze_channels + 2)
    return batch_size * height * width * (squeeze + pointwise + spatial)
