"""ResNet basic block: two 3x3 convolutions with batch norm, added to a projected shortcut."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=10, in_channels=3, out_channels=64, height=224, width=224, stride=1),
    "small": dict(batch_size=2, in_channels=3, out_channels=64, height=32, width=32, stride=1),
}

EXPLOITS = [
    "BatchNorm weights and biases are initialised to ones and zeros, so leaving them out passes.",
]


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, out_channels, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(out_channels)
        self.relu = nn.ReLU()
        self.conv2 = nn.Conv2d(out_channels, out_channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(out_channels)
        self.downsample = nn.Sequential(
            nn.Conv2d(in_channels, out_channels, 1, stride=stride, bias=False),
            nn.BatchNorm2d(out_channels),
        )

    def forward(self, x):
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out = out + self.downsample(x)
        return self.relu(out)


def get_inputs(batch_size=10, in_channels=3, height=224, width=224, **sizes):
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs(in_channels=3, out_channels=64, stride=1, **sizes):
    return [in_channels, out_channels, stride]


def get_flops(batch_size=10, in_channels=3, out_channels=64, height=224, width=224, stride=1):
    outputs = batch_size * out_channels * ((height - 1) // stride + 1) * ((width - 1) // stride + 1)
    convolutions = 2 * (9 * in_channels + 9 * out_channels + in_channels)
    # per output: convolutions, three norms (7 each), sum, two comparisons
    return outputs * (convolutions + 3 * 7 + 3)
