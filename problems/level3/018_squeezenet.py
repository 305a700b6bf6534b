"""SqueezeNet 1.0: convolutional stem, eight fire modules, convolutional classifier."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=64, height=512, width=512, num_classes=1000),
    "small": dict(batch_size=4, height=64, width=64, num_classes=100),
}

CENTRED = 1.15  # by initial weights some units are zero for all inputs

EXPLOITS = [
    "The default init shrinks the signal but not the biases: outputs of different inputs differ by less"
    " than 1e-5, so computing one sample and repeating it passes.",
]


class Fire(nn.Module):
    def __init__(self, in_channels, squeeze_channels, expand1x1_channels, expand3x3_channels):
        super().__init__()
        self.squeeze = nn.Conv2d(in_channels, squeeze_channels, 1)
        self.squeeze_activation = nn.ReLU()
        self.expand1x1 = nn.Conv2d(squeeze_channels, expand1x1_channels, 1)
        self.expand1x1_activation = nn.ReLU()
        self.expand3x3 = nn.Conv2d(squeeze_channels, expand3x3_channels, 3, padding=1)
        self.expand3x3_activation = nn.ReLU()

    def forward(self, x):
        x = self.squeeze_activation(self.squeeze(x))
        pointwise = self.expand1x1_activation(self.expand1x1(x))
        spatial = self.expand3x3_activation(self.expand3x3(x))
        return torch.cat([pointwise, spatial], dim=1)


class Model(nn.Module):
    def __init__(self, num_classes=1000):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 96, 7, stride=2),
            nn.ReLU(),
            nn.MaxPool2d(3, stride=2, ceil_mode=True),
            Fire(96, 16, 64, 64),
            Fire(128, 16, 64, 64),
            Fire(128, 32, 128, 128),
            nn.MaxPool2d(3, stride=2, ceil_mode=True),
            Fire(256, 32, 128, 128),
            Fire(256, 48, 192, 192),
            Fire(384, 48, 192, 192),
            Fire(384, 64, 256, 256),
            nn.MaxPool2d(3, stride=2, ceil_mode=True),
            Fire(512, 64, 256, 256),
        )
        self.classifier = nn.Sequential(
            nn.Dropout(0.0),
            nn.Conv2d(512, num_classes, 1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
        )

    def forward(self, x):
        return self.classifier(self.features(x)).flatten(1)


def get_inputs(batch_size=64, height=512, width=512, **sizes):
    return [torch.rand(batch_size, 3, height, width)]


def get_init_inputs(num_classes=1000, **sizes):
    return [num_classes]


def get_flops(batch_size=64, height=512, width=512, num_classes=1000):
    stages = [  # channels pooled, then input, squeeze and expand channels of fire modules
        (96, [(96, 16, 64), (128, 16, 64), (128, 32, 128)]),
        (256, [(256, 32, 128), (256, 48, 192), (384, 48, 192), (384, 64, 256)]),
        (512, [(512, 64, 256)]),
    ]
    # per output of a convolution: its taps, bias, comparison
    height, width = (height - 7) // 2 + 1, (width - 7) // 2 + 1
    flops = height * width * 96 * (2 * 3 * 7**2 + 2)
    for pooled, fires in stages:
        height, width = height // 2, width // 2  # 3x3 windows, stride 2, a partial one counts
        flops += height * width * pooled * 9
        for in_channels, squeeze, expand in fires:
            flops += height * width * squeeze * (2 * in_channels + 2)
            flops += height * width * expand * (2 * (1 + 9) * squeeze + 2 * 2)
    # the classifier has a mean as well
    flops += height * width * num_classes * (2 * 512 + 3)
    return batch_size * flops
