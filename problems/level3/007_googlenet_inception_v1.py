"""GoogLeNet (Inception v1): convolutional stem, nine inception modules, linear classifier."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=10, height=224, width=224, num_classes=1000),
    "small": dict(batch_size=2, height=64, width=64, num_classes=100),
}

CENTRED = 1.0  # by initial weights some units are zero for all inputs

EXPLOITS = [
    "The default init shrinks the signal but not the biases: outputs of different inputs of the published"
    " draw differ by less than 1e-5, so computing one sample and repeating it passes.",
]

# input; 1x1; reduction and 3x3; reduction and 5x5; pooling branch
INCEPTIONS = {
    "3a": (192, 64, 96, 128, 16, 32, 32),
    "3b": (256, 128, 128, 192, 32, 96, 64),
    "4a": (480, 192, 96, 208, 16, 48, 64),
    "4b": (512, 160, 112, 224, 24, 64, 64),
    "4c": (512, 128, 128, 256, 24, 64, 64),
    "4d": (512, 112, 144, 288, 32, 64, 64),
    "4e": (528, 256, 160, 320, 32, 128, 128),
    "5a": (832, 256, 160, 320, 32, 128, 128),
    "5b": (832, 384, 192, 384, 48, 128, 128),
}


class Inception(nn.Module):
    def __init__(self, in_channels, out_1x1, reduce_3x3, out_3x3, reduce_5x5, out_5x5, pool_proj):
        super().__init__()
        self.branch1x1 = nn.Conv2d(in_channels, out_1x1, 1)
        self.branch3x3 = nn.Sequential(
            nn.Conv2d(in_channels, reduce_3x3, 1),
            nn.Conv2d(reduce_3x3, out_3x3, 3, padding=1),
        )
        self.branch5x5 = nn.Sequential(
            nn.Conv2d(in_channels, reduce_5x5, 1),
            nn.Conv2d(reduce_5x5, out_5x5, 5, padding=2),
        )
        self.branch_pool = nn.Sequential(
            nn.MaxPool2d(3, stride=1, padding=1),
            nn.Conv2d(in_channels, pool_proj, 1),
        )

    def forward(self, x):
        branches = [self.branch1x1(x), self.branch3x3(x), self.branch5x5(x), self.branch_pool(x)]
        return torch.cat(branches, dim=1)


class Model(nn.Module):
    def __init__(self, num_classes=1000):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, stride=2, padding=3)
        self.maxpool1 = nn.MaxPool2d(3, stride=2, padding=1)
        self.conv2 = nn.Conv2d(64, 64, 1)
        self.conv3 = nn.Conv2d(64, 192, 3, padding=1)
        self.maxpool2 = nn.MaxPool2d(3, stride=2, padding=1)
        self.inception3a = Inception(*INCEPTIONS["3a"])
        self.inception3b = Inception(*INCEPTIONS["3b"])
        self.maxpool3 = nn.MaxPool2d(3, stride=2, padding=1)
        self.inception4a = Inception(*INCEPTIONS["4a"])
        self.inception4b = Inception(*INCEPTIONS["4b"])
        self.inception4c = Inception(*INCEPTIONS["4c"])
        self.inception4d = Inception(*INCEPTIONS["4d"])
        self.inception4e = Inception(*INCEPTIONS["4e"])
        self.maxpool4 = nn.MaxPool2d(3, stride=2, padding=1)
        self.inception5a = Inception(*INCEPTIONS["5a"])
        self.inception5b = Inception(*INCEPTIONS["5b"])
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.dropout = nn.Dropout(0.0)
        self.fc = nn.Linear(1024, num_classes)

    def forward(self, x):
        x = self.maxpool1(F.relu(self.conv1(x)))
        x = F.relu(self.conv2(x))
        x = self.maxpool2(F.relu(self.conv3(x)))
        x = self.inception3b(self.inception3a(x))
        x = self.maxpool3(x)
        x = self.inception4c(self.inception4b(self.inception4a(x)))
        x = self.inception4e(self.inception4d(x))
        x = self.maxpool4(x)
        x = self.inception5b(self.inception5a(x))
        x = self.avgpool(x).flatten(1)
        return self.fc(self.dropout(x))


def get_inputs(batch_size=10, height=224, width=224, **sizes):
    return [torch.rand(batch_size, 3, height, width)]


def get_init_inputs(num_classes=1000, **sizes):
    return [num_classes]


def inception_flops(in_channels, out_1x1, reduce_3x3, out_3x3, reduce_5x5, out_5x5, pool_proj):
    """Per pixel: convolutions with bias, max pooling (3 x 3)."""
    reduced = out_1x1 + reduce_3x3 + reduce_5x5 + pool_proj
    pointwise = reduced * (2 * in_channels + 1)
    spatial = out_3x3 * (2 * reduce_3x3 * 3**2 + 1) + out_5x5 * (2 * reduce_5x5 * 5**2 + 1)
    return pointwise + spatial + 9 * in_channels


def get_flops(batch_size=10, height=224, width=224, num_classes=1000):
    def pixels(halvings):
        """Pixels of all maps; each halving rounds up."""
        return batch_size * -(-height // 2**halvings) * -(-width // 2**halvings)

    # stem: convolution, bias, comparison; max pooling (3 x 3)
    flops = pixels(1) * 64 * (2 * 3 * 7**2 + 2) + pixels(2) * 64 * 9
    flops += pixels(2) * (64 * (2 * 64 + 2) + 192 * (2 * 64 * 3**2 + 2)) + pixels(3) * 192 * 9
    for name, channels in INCEPTIONS.items():
        # stages 3, 4, 5 lie behind 3, 4, 5 halvings
        flops += pixels(int(name[0])) * inception_flops(*channels)
    # max pooling between the stages, mean, matmul, bias
    flops += pixels(4) * 480 * 9 + pixels(5) * 832 * 9
    return flops + pixels(5) * 1024 + batch_size * num_classes * (2 * 1024 + 1)
