"""EfficientNet-B2 variant whose squeeze-and-excitation replaces the features instead of gating them.

Each block averages its maps to one pixel, so from the first block on all convolutions work on
1x1 maps and every batch norm normalises over the batch alone. With the published batch of two
that amplifies rounding until it decides the output: even a change in the order of summation
exceeds any usual tolerance.
"""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=2, height=224, width=224, num_classes=1000),
    "small": dict(batch_size=32, height=16, width=16, num_classes=100),
}

EXPLOITS = [
    "BatchNorm weights and biases are initialised to ones and zeros, so leaving them out passes.",
]

BLOCKS = [  # channels in, out, stride, expansion
    (32, 96, 1, 3),
    (96, 144, 2, 6),
    (144, 192, 2, 6),
    (192, 288, 2, 6),
    (288, 384, 1, 6),
]


def mbconv(in_channels, out_channels, stride, expand_ratio):
    hidden = in_channels * expand_ratio
    return nn.Sequential(
        nn.Conv2d(in_channels, hidden, 1, bias=False),
        nn.BatchNorm2d(hidden),
        nn.ReLU(),
        nn.Conv2d(hidden, hidden, 3, stride=stride, padding=1, groups=hidden, bias=False),
        nn.BatchNorm2d(hidden),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Conv2d(hidden, hidden // 4, 1, bias=False),
        nn.ReLU(),
        nn.Conv2d(hidden // 4, hidden, 1, bias=False),
        nn.Sigmoid(),
        nn.Conv2d(hidden, out_channels, 1, bias=False),
        nn.BatchNorm2d(out_channels),
    )


class Model(nn.Module):
    def __init__(self, num_classes=1000):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 32, 3, stride=2, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(32)
        self.relu = nn.ReLU()
        self.mbconv1 = mbconv(*BLOCKS[0])
        self.mbconv2 = mbconv(*BLOCKS[1])
        self.mbconv3 = mbconv(*BLOCKS[2])
        self.mbconv4 = mbconv(*BLOCKS[3])
        self.mbconv5 = mbconv(*BLOCKS[4])
        self.conv_final = nn.Conv2d(384, 1408, 1, bias=False)
        self.bn_final = nn.BatchNorm2d(1408)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(1408, num_classes)

    def forward(self, x):
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.mbconv3(self.mbconv2(self.mbconv1(x)))
        x = self.mbconv5(self.mbconv4(x))
        x = self.relu(self.bn_final(self.conv_final(x)))
        x = self.avgpool(x).flatten(1)
        return self.fc(x)


def get_inputs(batch_size=2, height=224, width=224, **sizes):
    return [torch.rand(batch_size, 3, height, width)]


def get_init_inputs(num_classes=1000, **sizes):
    return [num_classes]


def get_flops(batch_size=2, height=224, width=224, num_classes=1000):
    # per output of a convolution: its taps, norm (7), comparison unless said
    pixels = batch_size * ((height + 1) // 2) * ((width + 1) // 2)
    flops = pixels * 32 * (2 * 3 * 9 + 8)
    for in_channels, out_channels, _, expansion in BLOCKS:
        hidden = in_channels * expansion
        # the first block keeps its maps, the others have one pixel; mean
        flops += pixels * hidden * (2 * in_channels + 8)
        flops += pixels * hidden * (2 * 9 + 8 + 1)
        pixels = batch_size
        # comparison; sigmoid (4); norm
        flops += pixels * (hidden // 4) * (2 * hidden + 1)
        flops += pixels * hidden * (2 * (hidden // 4) + 4)
        flops += pixels * out_channels * (2 * hidden + 7)
    # the last convolution is followed by a mean; matmul, bias
    flops += pixels * 1408 * (2 * 384 + 9)
    return flops + batch_size * num_classes * (2 * 1408 + 1)
