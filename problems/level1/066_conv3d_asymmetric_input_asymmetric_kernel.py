"""3D convolution of a flat volume, 3 x 5 x 7 kernel, without bias."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=8, in_channels=3, out_channels=64, depth=16, height=128, width=128),
    "small": dict(batch_size=2, in_channels=3, out_channels=16, depth=8, height=32, width=32),
    "ragged": dict(batch_size=3, in_channels=5, out_channels=33, depth=9, height=67, width=101),
    "video": dict(batch_size=4, in_channels=3, out_channels=64, depth=16, height=112, width=112),
}


class Model(nn.Module):
    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=(1, 1, 1),
        padding=(0, 0, 0),
        dilation=(1, 1, 1),
        groups=1,
        bias=False,
    ):
        super().__init__()
        self.conv3d = nn.Conv3d(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias
        )

    def forward(self, x):
        return self.conv3d(x)


def get_inputs(batch_size=8, in_channels=3, depth=16, height=128, width=128, **sizes):
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs(in_channels=3, out_channels=64, **sizes):
    return [in_channels, out_channels, (3, 5, 7)]


def get_flops(batch_size=8, in_channels=3, out_channels=64, depth=16, height=128, width=128):
    outputs = batch_size * out_channels * (depth - 2) * (height - 4) * (width - 6)
    return 2 * outputs * in_channels * 3 * 5 * 7
