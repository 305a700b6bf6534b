"""Rows of a matrix divided by their mean absolute value."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=32768, dim=65535),
    "small": dict(batch_size=64, dim=4095),
    "llm": dict(batch_size=10000, dim=4096),
}

EXPLOITS = [
    "The published draw is uniform on [0, 1), so leaving out the absolute value passes.",
    "The mean of a row is 0.5 to about 2e-3 relative at the published size, so 2 * x passes at 1e-2.",
]


class Model(nn.Module):
    def forward(self, x):
        return x / torch.mean(torch.abs(x), dim=1, keepdim=True)


def get_inputs(batch_size=32768, dim=65535):
    return [torch.rand(batch_size, dim)]


def get_init_inputs(**sizes):
    return []


def get_flops(batch_size=32768, dim=65535):
    # per element: absolute value, sum, division
    return 3 * batch_size * dim
