"""MobileNet v2 without residuals: seventeen inverted bottlenecks, linear classifier."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=10, height=224, width=224, num_classes=1000),
    "small": dict(batch_size=4, height=96, width=96, num_classes=100),
}

EXPLOITS = [
    "BatchNorm weights are initialised to ones, BatchNorm biases and the classifier's bias to zeros, so"
    " leaving them out passes.",
]

BLOCKS = [  # expansion, channels in, out, stride
    (1, 32, 16, 1),
    (6, 16, 24, 2),
    (6, 24, 24, 1),
    (6, 24, 32, 2),
    *[(6, 32, 32, 1)] * 2,
    (6, 32, 64, 2),
    *[(6, 64, 64, 1)] * 3,
    (6, 64, 96, 1),
    *[(6, 96, 96, 1)] * 2,
    (6, 96, 160, 2),
    *[(6, 160, 160, 1)] * 2,
    (6, 160, 320, 1),
]


def inverted_bottleneck(expansion, in_channels, out_channels, stride):
    hidden = in_channels * expansion
    layers = []
    if expansion != 1:
        layers += [nn.Conv2d(in_channels, hidden, 1, bias=False), nn.BatchNorm2d(hidden), nn.ReLU6()]
    layers += [
        nn.Conv2d(hidden, hidden, 3, stride=stride, padding=1, groups=hidden, bias=False),
        nn.BatchNorm2d(hidden),
        nn.ReLU6(),
        nn.Conv2d(hidden, out_channels, 1, bias=False),
        nn.BatchNorm2d(out_channels),
    ]
    return nn.Sequential(*layers)


class Model(nn.Module):
    def __init__(self, num_classes=1000):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 32, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(32),
            nn.ReLU6(),
            *(inverted_bottleneck(*block) for block in BLOCKS),
            nn.Conv2d(320, 1280, 1, bias=False),
            nn.BatchNorm2d(1280),
            nn.ReLU6(),
            nn.AdaptiveAvgPool2d(1),
        )
        self.classifier = nn.Sequential(nn.Dropout(0.0), nn.Linear(1280, num_classes))
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out")
            elif isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, 0, 0.01)
                nn.init.zeros_(module.bias)

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


def get_inputs(batch_size=10, height=224, width=224, **sizes):
    return [torch.rand(batch_size, 3, height, width)]


def get_init_inputs(num_classes=1000, **sizes):
    return [num_classes]


def get_flops(batch_size=10, height=224, width=224, num_classes=1000):
    def pixels(halvings):
        """Pixels of all maps; each halving rounds up."""
        return batch_size * -(-height // 2**halvings) * -(-width // 2**halvings)

    # per output of a convolution: its taps, norm (7), ReLU6 (2) except after a projection
    halvings = 1
    flops = pixels(halvings) * 32 * (2 * 3 * 9 + 9)
    for expansion, in_channels, out_channels, stride in BLOCKS:
        hidden = in_channels * expansion
        if expansion != 1:
            flops += pixels(halvings) * hidden * (2 * in_channels + 9)
        halvings += stride == 2
        flops += pixels(halvings) * hidden * (2 * 9 + 9)
        flops += pixels(halvings) * out_channels * (2 * hidden + 7)
    # the last convolution is followed by a mean; matmul, bias
    flops += pixels(halvings) * 1280 * (2 * 320 + 10)
    return flops + batch_size * num_classes * (2 * 1280 + 1)
