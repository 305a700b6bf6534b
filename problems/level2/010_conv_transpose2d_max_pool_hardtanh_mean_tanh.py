"""2-D transposed convolution, max pooling, hardtanh, mean over the positions, tanh."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=128, in_channels=64, out_channels=64, height=256, width=256),
    "small": dict(batch_size=4, in_channels=16, out_channels=16, height=24, width=20),
    "ragged": dict(batch_size=19, in_channels=44, out_channels=70, height=117, width=89),
}

EXPLOITS = [
    "The means over all positions are nearly the same for every sample drawn from [0, 1): the output for "
    "another input is within 1e-2, though not within 1e-4.",
]


class Model(nn.Module):
    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride,
        padding,
        maxpool_kernel_size,
        maxpool_stride,
        hardtanh_min,
        hardtanh_max,
    ):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose2d(in_channels, out_channels, kernel_size, stride, padding)
        self.maxpool = nn.MaxPool2d(kernel_size=maxpool_kernel_size, stride=maxpool_stride)
        self.hardtanh = nn.Hardtanh(min_val=hardtanh_min, max_val=hardtanh_max)

    def forward(self, x):
        x = self.conv_transpose(x)
        x = self.maxpool(x)
        x = self.hardtanh(x)
        x = torch.mean(x, dim=(2, 3), keepdim=True)
        return torch.tanh(x)


def get_inputs(batch_size=128, in_channels=64, height=256, width=256, **sizes):
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs(in_channels=64, out_channels=64, **sizes):
    return [in_channels, out_channels, 3, 1, 1, 2, 2, -1, 1]


def get_flops(batch_size=128, in_channels=64, out_channels=64, height=256, width=256):
    positions = batch_size * height * width
    maps = batch_size * out_channels
    pooled = maps * (height // 2) * (width // 2)
    matmul = 2 * positions * in_channels * out_channels * 9
    # transposed convolution (3 x 3, same size); per output: bias;
    # per pooled output: window (4), hardtanh (2), mean; per channel of a sample: tanh
    return matmul + positions * out_channels + 7 * pooled + maps
