"""ResNet-18: convolutional stem, four stages of two basic blocks, linear classifier."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=2, height=224, width=224, num_classes=1000),
    "small": dict(batch_size=4, height=96, width=96, num_classes=100),
}

EXPLOITS = [
    "BatchNorm weights and biases are initialised to ones and zeros, so leaving them out passes.",
]


class BasicBlock(nn.Module):
    def __init__(self, in_channels, out_channels, stride):
        super().__init__()
        downsample = None
        if in_channels != out_channels:  # drawn before the other convolutions
            downsample = nn.Sequential(
                nn.Conv2d(in_channels, out_channels, 1, stride=stride, bias=False),
                nn.BatchNorm2d(out_channels),
            )
        self.conv1 = nn.Conv2d(in_channels, out_channels, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(out_channels)
        self.relu = nn.ReLU()
        self.conv2 = nn.Conv2d(out_channels, out_channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(out_channels)
        self.downsample = downsample

    def forward(self, x):
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        shortcut = x if self.downsample is None else self.downsample(x)
        return self.relu(out + shortcut)


def stage(in_channels, out_channels, stride):
    return nn.Sequential(
        BasicBlock(in_channels, out_channels, stride),
        BasicBlock(out_channels, out_channels, 1),
    )


class Model(nn.Module):
    def __init__(self, num_classes=1000):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU()
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.layer1 = stage(64, 64, 1)
        self.layer2 = stage(64, 128, 2)
        self.layer3 = stage(128, 256, 2)
        self.layer4 = stage(256, 512, 2)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(512, num_classes)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        x = self.avgpool(x).flatten(1)
        return self.fc(x)


def get_inputs(batch_size=2, height=224, width=224, **sizes):
    return [torch.rand(batch_size, 3, height, width)]


def get_init_inputs(num_classes=1000, **sizes):
    return [num_classes]


def get_flops(batch_size=2, height=224, width=224, num_classes=1000):
    def pixels(halvings):
        """Pixels of all maps; each halving rounds up."""
        return batch_size * -(-height // 2**halvings) * -(-width // 2**halvings)

    # stem: convolution, norm (7), comparison; max pooling (3 x 3)
    flops = pixels(1) * 64 * (2 * 3 * 7**2 + 8) + pixels(2) * 64 * 9
    in_channels = 64
    for halvings, channels in ((2, 64), (3, 128), (4, 256), (5, 512)):
        outputs = pixels(halvings) * channels
        # two blocks: two convolutions and norms each, sum, two comparisons
        flops += outputs * (2 * 9 * (in_channels + 3 * channels) + 2 * (2 * 7 + 3))
        if in_channels != channels:
            flops += outputs * (2 * in_channels + 7)  # convolution and norm of the shortcut
        in_channels = channels
    # mean, matmul, bias
    return flops + pixels(5) * 512 + batch_size * num_classes * (2 * 512 + 1)
