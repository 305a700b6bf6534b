"""Group norm: groups of channels by their mean and variance in each sample."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=112, features=64, num_groups=8, height=512, width=512),
    "small": dict(batch_size=4, features=64, num_groups=8, height=32, width=32),
    "vision": dict(batch_size=15, features=320, num_groups=32, height=64, width=64),
}

EXPLOITS = [
    "Weight and bias are initialised to ones and zeros, so leaving them out passes.",
    "At the published size every group has mean 1/2 and variance 1/12 so closely that "
    "(x - 0.5) * sqrt(12), without any statistics, passes at a tolerance of 1e-2.",
]


class Model(nn.Module):
    def __init__(self, num_features, num_groups):
        super().__init__()
        self.gn = nn.GroupNorm(num_groups, num_features)

    def forward(self, x):
        return self.gn(x)


def get_inputs(batch_size=112, features=64, height=512, width=512, **sizes):
    return [torch.rand(batch_size, features, height, width)]


def get_init_inputs(features=64, num_groups=8, **sizes):
    return [features, num_groups]


def get_flops(batch_size=112, features=64, num_groups=8, height=512, width=512):
    # per element: sum, subtraction, square, sum, scaling, weight, bias
    return 7 * batch_size * features * height * width
