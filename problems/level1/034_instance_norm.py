"""Instance norm: each channel of each sample by its own mean and variance."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=112, features=64, height=512, width=512),
    "small": dict(batch_size=4, features=64, height=32, width=32),
    "ragged": dict(batch_size=30, features=100, height=127, width=129),
}

EXPLOITS = [
    "At the published size every plane has mean 1/2 and variance 1/12 so closely that "
    "(x - 0.5) * sqrt(12), without any statistics, passes at a tolerance of 1e-2.",
]


class Model(nn.Module):
    def __init__(self, num_features):
        super().__init__()
        self.inorm = nn.InstanceNorm2d(num_features)

    def forward(self, x):
        return self.inorm(x)


def get_inputs(batch_size=112, features=64, height=512, width=512):
    return [torch.rand(batch_size, features, height, width)]


def get_init_inputs(features=64, **sizes):
    return [features]


def get_flops(batch_size=112, features=64, height=512, width=512):
    # per element: sum, subtraction, square, sum, scaling
    return 5 * batch_size * features * height * width
