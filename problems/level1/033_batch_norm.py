"""Batch norm in train mode: each channel by its mean and variance over the batch."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=64, features=64, height=512, width=512),
    "small": dict(batch_size=4, features=64, height=32, width=32),
    "vision": dict(batch_size=63, features=256, height=56, width=56),
}

EXPLOITS = [
    "Weight and bias are initialised to ones and zeros, so leaving them out passes.",
    "At the published size every channel has mean 1/2 and variance 1/12 so closely that "
    "(x - 0.5) * sqrt(12), without any statistics, passes at a tolerance of 1e-2.",
]


class Model(nn.Module):
    def __init__(self, num_features):
        super().__init__()
        self.bn = nn.BatchNorm2d(num_features)

    def forward(self, x):
        return self.bn(x)


def get_inputs(batch_size=64, features=64, height=512, width=512):
    return [torch.rand(batch_size, features, height, width)]


def get_init_inputs(features=64, **sizes):
    return [features]


def get_flops(batch_size=64, features=64, height=512, width=512):
    # per element: sum, subtraction, square, sum, scaling, weight, bias
    return 7 * batch_size * features * height * width
