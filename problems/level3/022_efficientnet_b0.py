"""EfficientNet-B0 without squeeze-and-excitation: thirteen MBConv blocks, linear classifier."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=10, height=224, width=224, num_classes=1000),
    "small": dict(batch_size=4, height=96, width=96, num_classes=100),
}

EXPLOITS = [
    "BatchNorm weights and biases are initialised to ones and zeros, so leaving them out passes.",
]

BLOCKS = [  # channels in, out, kernel size, stride, expansion
    (32, 16, 3, 1, 1),
    (16, 24, 3, 2, 6),
    (24, 24, 3, 1, 6),
    (24, 40, 5, 2, 6),
    (40, 40, 5, 1, 6),
    (40, 80, 3, 2, 6),
    (80, 80, 3, 1, 6),
    (80, 112, 5, 1, 6),
    (112, 112, 5, 1, 6),
    (112, 192, 5, 2, 6),
    (192, 192, 5, 1, 6),
    (192, 192, 5, 1, 6),
    (192, 320, 3, 1, 6),
]


class MBConv(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, expand_ratio):
        super().__init__()
        self.residual = stride == 1 and in_channels == out_channels
        self.expands = expand_ratio != 1
        hidden = in_channels * expand_ratio
        if self.expands:
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
        out = self.expand_conv(x) if self.expands else x
        out = self.project_conv(self.depthwise_conv(out))
        return out + x if self.residual else out


class Model(nn.Module):
    def __init__(self, num_classes=1000):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 32, 3, stride=2, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(32)
        self.blocks = nn.Sequential(*(MBConv(*block) for block in BLOCKS))
        self.conv2 = nn.Conv2d(320, 1280, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(1280)
        self.fc = nn.Linear(1280, num_classes)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = self.blocks(x)
        x = F.relu(self.bn2(self.conv2(x)))
        x = F.adaptive_avg_pool2d(x, 1).flatten(1)
        return self.fc(x)


def get_inputs(batch_size=10, height=224, width=224, **sizes):
    return [torch.rand(batch_size, 3, height, width)]


def get_init_inputs(num_classes=1000, **sizes):
    return [num_classes]


def get_flops(batch_size=10, height=224, width=224, num_classes=1000):
    def pixels(halvings):
        """Pixels of all maps; each halving rounds up."""
        return batch_size * -(-height // 2**halvings) * -(-width // 2**halvings)

    # per output of a convolution: its taps, norm (7); ReLU, or ReLU6 (2) except after a projection
    halvings = 1
    flops = pixels(halvings) * 32 * (2 * 3 * 9 + 8)
    for in_channels, out_channels, kernel_size, stride, expansion in BLOCKS:
        hidden = in_channels * expansion
        if expansion != 1:
            flops += pixels(halvings) * hidden * (2 * in_channels + 9)
        halvings += stride == 2
        flops += pixels(halvings) * hidden * (2 * kernel_size**2 + 9)
        flops += pixels(halvings) * out_channels * (2 * hidden + 7)
        if stride == 1 and in_channels == out_channels:
            flops += pixels(halvings) * out_channels  # residual
    # the last convolution is followed by a mean; matmul, bias
    flops += pixels(halvings) * 1280 * (2 * 320 + 9)
    return flops + batch_size * num_classes * (2 * 1280 + 1)
