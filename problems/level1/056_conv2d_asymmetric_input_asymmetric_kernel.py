"""2D convolution of a tall image, 5 x 7 kernel, without bias."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=8, in_channels=64, out_channels=128, height=512, width=256),
    "small": dict(batch_size=2, in_channels=16, out_channels=32, height=64, width=32),
    "ragged": dict(batch_size=3, in_channels=37, out_channels=75, height=259, width=131),
}


class Model(nn.Module):
    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=(1, 1),
        padding=(0, 0),
        dilation=(1, 1),
        groups=1,
        bias=False,
    ):
        super().__init__()
        self.conv2d = nn.Conv2d(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias
        )

    def forward(self, x):
        return self.conv2d(x)


def get_inputs(batch_size=8, in_channels=64, height=512, width=256, **sizes):
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs(in_channels=64, out_channels=128, **sizes):
    return [in_channels, out_channels, (5, 7)]


def get_flops(batch_size=8, in_channels=64, out_channels=128, height=512, width=256):
    outputs = batch_size * out_channels * (height - 4) * (width - 6)
    return 2 * outputs * in_channels * 5 * 7
