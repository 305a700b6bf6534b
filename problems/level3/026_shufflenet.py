"""ShuffleNet whose units keep the map size: convolutional stem, thirteen units, linear classifier."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=10, height=224, width=224, num_classes=1000),
    "small": dict(batch_size=2, height=48, width=48, num_classes=100),
}

EXPLOITS = [
    "BatchNorm weights and biases are initialised to ones and zeros, so leaving them out passes.",
]

REPEATS = (3, 7, 3)
CHANNELS = (24, 240, 480, 960)


class ShuffleUnit(nn.Module):
    def __init__(self, in_channels, out_channels, groups):
        super().__init__()
        self.groups = groups
        mid = out_channels // 4
        self.conv1 = nn.Conv2d(in_channels, mid, 1, groups=groups, bias=False)
        self.bn1 = nn.BatchNorm2d(mid)
        self.conv2 = nn.Conv2d(mid, mid, 3, padding=1, groups=mid, bias=False)
        self.bn2 = nn.BatchNorm2d(mid)
        self.conv3 = nn.Conv2d(mid, out_channels, 1, groups=groups, bias=False)
        self.bn3 = nn.BatchNorm2d(out_channels)
        self.shortcut = nn.Sequential()
        if in_channels != out_channels:
            self.shortcut = nn.Sequential(
                nn.Conv2d(in_channels, out_channels, 1, bias=False),
                nn.BatchNorm2d(out_channels),
            )

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        # channel i of group g becomes channel g of group i
        out = out.unflatten(1, (self.groups, -1)).transpose(1, 2).flatten(1, 2)
        out = F.relu(self.bn3(self.conv3(out)))
        return out + self.shortcut(x)


def stage(in_channels, out_channels, repeats, groups):
    first = ShuffleUnit(in_channels, out_channels, groups)
    return nn.Sequential(
        first, *(ShuffleUnit(out_channels, out_channels, groups) for _ in range(repeats - 1))
    )


class Model(nn.Module):
    def __init__(self, num_classes=1000, groups=3, stages_repeats=REPEATS, stages_out_channels=CHANNELS):
        super().__init__()
        channels, repeats = stages_out_channels, stages_repeats
        self.conv1 = nn.Conv2d(3, channels[0], 3, stride=2, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels[0])
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.stage2 = stage(channels[0], channels[1], repeats[0], groups)
        self.stage3 = stage(channels[1], channels[2], repeats[1], groups)
        self.stage4 = stage(channels[2], channels[3], repeats[2], groups)
        self.conv5 = nn.Conv2d(channels[3], 1024, 1, bias=False)
        self.bn5 = nn.BatchNorm2d(1024)
        self.fc = nn.Linear(1024, num_classes)

    def forward(self, x):
        x = self.maxpool(F.relu(self.bn1(self.conv1(x))))
        x = self.stage4(self.stage3(self.stage2(x)))
        x = F.relu(self.bn5(self.conv5(x)))
        x = F.adaptive_avg_pool2d(x, 1).flatten(1)
        return self.fc(x)


def get_inputs(batch_size=10, height=224, width=224, **sizes):
    return [torch.rand(batch_size, 3, height, width)]


def get_init_inputs(num_classes=1000, **sizes):
    return [num_classes]


def get_flops(batch_size=10, height=224, width=224, num_classes=1000):
    groups = 3
    # per output of a convolution: its taps, norm (7), comparison; max pooling (3 x 3)
    height, width = (height + 1) // 2, (width + 1) // 2
    flops = batch_size * height * width * 24 * (2 * 3 * 9 + 8)
    height, width = (height + 1) // 2, (width + 1) // 2
    flops += batch_size * height * width * 24 * 9
    for in_channels, out_channels, repeats in zip(CHANNELS, CHANNELS[1:], REPEATS):
        mid = out_channels // 4
        # one unit, less its first convolution: no comparison after the depthwise one; residual
        unit = mid * (2 * 9 + 7) + out_channels * (2 * (mid // groups) + 8 + 1)
        grouped_inputs = (in_channels + (repeats - 1) * out_channels) // groups
        first = mid * (2 * grouped_inputs + 8 * repeats)
        shortcut = out_channels * (2 * in_channels + 7)
        flops += batch_size * height * width * (first + repeats * unit + shortcut)
    # the last convolution is followed by a mean; matmul, bias
    flops += batch_size * height * width * 1024 * (2 * 960 + 9)
    return flops + batch_size * num_classes * (2 * 1024 + 1)
