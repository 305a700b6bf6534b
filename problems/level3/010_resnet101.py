"""ResNet-101: convolutional stem, four stages of 3, 4, 23 and 3 bottleneck blocks, linear classifier."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=10, height=224, width=224, num_classes=1000),
    "small": dict(batch_size=4, height=96, width=96, num_classes=100),
}

EXPLOITS = [
    "BatchNorm weights and biases are initialised to ones and zeros, so leaving them out passes.",
]

BLOCKS = (3, 4, 23, 3)


class Bottleneck(nn.Module):
    def __init__(self, in_channels, width, stride):
        super().__init__()
        downsample = None
        if in_channels != 4 * width:  # drawn before the other convolutions
            downsample = nn.Sequential(
                nn.Conv2d(in_channels, 4 * width, 1, stride=stride, bias=False),
                nn.BatchNorm2d(4 * width),
            )
        self.conv1 = nn.Conv2d(in_channels, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride=stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * width)
        self.relu = nn.ReLU()
        self.downsample = downsample

    def forward(self, x):
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        shortcut = x if self.downsample is None else self.downsample(x)
        return self.relu(out + shortcut)


def stage(in_channels, width, blocks, stride):
    first = Bottleneck(in_channels, width, stride)
    return nn.Sequential(first, *(Bottleneck(4 * width, width, 1) for _ in range(blocks - 1)))


class Model(nn.Module):
    def __init__(self, layers, num_classes=1000):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU()
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.layer1 = stage(64, 64, layers[0], 1)
        self.layer2 = stage(256, 128, layers[1], 2)
        self.layer3 = stage(512, 256, layers[2], 2)
        self.layer4 = stage(1024, 512, layers[3], 2)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(2048, num_classes)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        x = self.avgpool(x).flatten(1)
        return self.fc(x)


def get_inputs(batch_size=10, height=224, width=224, **sizes):
    return [torch.rand(batch_size, 3, height, width)]


def get_init_inputs(num_classes=1000, **sizes):
    return [list(BLOCKS), num_classes]


def get_flops(batch_size=10, height=224, width=224, num_classes=1000):
    def pixels(halvings):
        """Pixels of all maps; each halving rounds up."""
        return batch_size * -(-height // 2**halvings) * -(-width // 2**halvings)

    # stem: convolution, norm (7), comparison; max pooling (3 x 3)
    flops = pixels(1) * 64 * (2 * 3 * 7**2 + 8) + pixels(2) * 64 * 9
    in_channels = 64
    before = pixels(2)
    for stage_index, blocks in enumerate(BLOCKS):
        planes = 64 * 2**stage_index
        after = pixels(2 + stage_index)
        for _ in range(blocks):
            # convolution, norm, comparison; the 3x3 one has the stride
            flops += before * planes * (2 * in_channels + 8)
            flops += after * planes * (2 * 9 * planes + 8)
            # convolution, norm, sum, comparison
            flops += after * 4 * planes * (2 * planes + 9)
            if in_channels != 4 * planes:
                flops += after * 4 * planes * (2 * in_channels + 7)  # shortcut
            in_channels = 4 * planes
            before = after
    # mean, matmul, bias
    return flops + pixels(5) * 2048 + batch_size * num_classes * (2 * 2048 + 1)
