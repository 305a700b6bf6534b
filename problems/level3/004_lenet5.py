"""LeNet-5: two convolutions with ReLU and max pooling, three linear layers."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=4096, num_classes=20),
    "small": dict(batch_size=64, num_classes=20),
}

CENTRED = 1.0  # by initial weights some units are zero for all inputs


class Model(nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * 5 * 5, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, num_classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = x.flatten(1)
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        return self.fc3(x)


def get_inputs(batch_size=4096, **sizes):
    return [torch.rand(batch_size, 1, 32, 32)]


def get_init_inputs(num_classes=20, **sizes):
    return [num_classes]


def get_flops(batch_size=4096, num_classes=20):
    flops = 0
    size = 32
    for in_channels, out_channels in ((1, 6), (6, 16)):
        size = size - 5 + 1
        # convolution, bias, comparison
        flops += size**2 * out_channels * (2 * in_channels * 5**2 + 2)
        size = size // 2
        flops += size**2 * out_channels * 4  # max pooling
    # matmul, bias, comparison; none after the last layer
    flops += 120 * (2 * 16 * size**2 + 2) + 84 * (2 * 120 + 2) + num_classes * (2 * 84 + 1)
    return batch_size * flops
