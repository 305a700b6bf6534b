"""Root-mean-square norm over the channels: x / sqrt(mean(x^2) + eps)."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=112, features=64, height=512, width=512),
    "small": dict(batch_size=4, features=64, height=32, width=32),
    "ragged": dict(batch_size=30, features=100, height=127, width=129),
}


class Model(nn.Module):
    def __init__(self, num_features, eps=1e-5):
        super().__init__()
        self.num_features = num_features
        self.eps = eps

    def forward(self, x):
        rms = torch.sqrt(torch.mean(x**2, dim=1, keepdim=True) + self.eps)
        return x / rms


def get_inputs(batch_size=112, features=64, height=512, width=512):
    return [torch.rand(batch_size, features, height, width)]


def get_init_inputs(features=64, **sizes):
    return [features]


def get_flops(batch_size=112, features=64, height=512, width=512):
    # per element: square, sum, division; per position: epsilon, root
    positions = batch_size * height * width
    return 3 * positions * features + 2 * positions
