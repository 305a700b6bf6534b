"""MobileNet v1: thirteen depthwise-separable convolutions with batch norm, linear classifier."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=10, num_classes=1000, alpha=1.0),
    "small": dict(batch_size=2, num_classes=100, alpha=0.5),
}

EXPLOITS = [
    "BatchNorm weights and biases are initialised to ones and zeros, so leaving them out passes.",
]

BLOCKS = [  # channels in, out (times alpha), stride
    (32, 64, 1),
    (64, 128, 2),
    (128, 128, 1),
    (128, 256, 2),
    (256, 256, 1),
    (256, 512, 2),
    *[(512, 512, 1)] * 5,
    (512, 1024, 2),
    (1024, 1024, 1),
]


def convolution(in_channels, out_channels, stride):
    return nn.Sequential(
        nn.Conv2d(in_channels, out_channels, 3, stride=stride, padding=1, bias=False),
        nn.BatchNorm2d(out_channels),
        nn.ReLU(),
    )


def separable_convolution(in_channels, out_channels, stride):
    return nn.Sequential(
        nn.Conv2d(
            in_channels, in_channels, 3, stride=stride, padding=1, groups=in_channels, bias=False
        ),
        nn.BatchNorm2d(in_channels),
        nn.ReLU(),
        nn.Conv2d(in_channels, out_channels, 1, bias=False),
        nn.BatchNorm2d(out_channels),
        nn.ReLU(),
    )


class Model(nn.Module):
    def __init__(self, num_classes=1000, input_channels=3, alpha=1.0):
        super().__init__()
        self.model = nn.Sequential(
            convolution(input_channels, int(32 * alpha), 2),
            *(separable_convolution(int(i * alpha), int(o * alpha), stride) for i, o, stride in BLOCKS),
            nn.AvgPool2d(7),
        )
        self.fc = nn.Linear(int(1024 * alpha), num_classes)

    def forward(self, x):
        x = self.model(x).flatten(1)
        return self.fc(x)


def get_inputs(batch_size=10, **sizes):
    return [torch.rand(batch_size, 3, 224, 224)]


def get_init_inputs(num_classes=1000, alpha=1.0, **sizes):
    return [num_classes, 3, alpha]


def get_flops(batch_size=10, num_classes=1000, alpha=1.0):
    # per output of a convolution: its taps, norm (7), comparison
    size = 224 // 2
    flops = size**2 * int(32 * alpha) * (2 * 3 * 9 + 8)
    for in_channels, out_channels, stride in BLOCKS:
        in_channels, out_channels = int(in_channels * alpha), int(out_channels * alpha)
        size = size // stride
        flops += size**2 * in_channels * (2 * 9 + 8)
        flops += size**2 * out_channels * (2 * in_channels + 8)
    # average pooling over the whole map; matmul, bias
    flops += size**2 * out_channels + num_classes * (2 * out_channels + 1)
    return batch_size * flops
