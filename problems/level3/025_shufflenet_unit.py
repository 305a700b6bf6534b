"""ShuffleNet unit: grouped 1x1 and depthwise 3x3 convolutions, channel shuffle, projected shortcut."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=10, in_channels=240, out_channels=480, height=224, width=224, groups=3),
    "small": dict(batch_size=2, in_channels=60, out_channels=120, height=28, width=28, groups=3),
}

EXPLOITS = [
    "BatchNorm weights and biases are initialised to ones and zeros, so leaving them out passes.",
]


class ChannelShuffle(nn.Module):
    """Channel i of group g becomes channel g of group i."""

    def __init__(self, groups):
        super().__init__()
        self.groups = groups

    def forward(self, x):
        return x.unflatten(1, (self.groups, -1)).transpose(1, 2).flatten(1, 2)


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, groups=3):
        super().__init__()
        mid = out_channels // 4
        self.conv1 = nn.Conv2d(in_channels, mid, 1, groups=groups, bias=False)
        self.bn1 = nn.BatchNorm2d(mid)
        self.conv2 = nn.Conv2d(mid, mid, 3, padding=1, groups=mid, bias=False)
        self.bn2 = nn.BatchNorm2d(mid)
        self.conv3 = nn.Conv2d(mid, out_channels, 1, groups=groups, bias=False)
        self.bn3 = nn.BatchNorm2d(out_channels)
        self.shuffle = ChannelShuffle(groups)
        self.shortcut = nn.Sequential(
            nn.Conv2d(in_channels, out_channels, 1, bias=False),
            nn.BatchNorm2d(out_channels),
        )

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out = self.shuffle(out)
        out = F.relu(self.bn3(self.conv3(out)))
        return out + self.shortcut(x)


def get_inputs(batch_size=10, in_channels=240, height=224, width=224, **sizes):
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs(in_channels=240, out_channels=480, groups=3, **sizes):
    return [in_channels, out_channels, groups]


def get_flops(batch_size=10, in_channels=240, out_channels=480, height=224, width=224, groups=3):
    mid = out_channels // 4
    # per output of a convolution: its taps, norm (7), comparison; none after the depthwise one
    first = mid * (2 * (in_channels // groups) + 8)
    depthwise = mid * (2 * 9 + 7)
    last = out_channels * (2 * (mid // groups) + 8)
    # convolution, norm, sum
    shortcut = out_channels * (2 * in_channels + 8)
    return batch_size * height * width * (first + depthwise + last + shortcut)
