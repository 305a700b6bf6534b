"""Softsign, elementwise: x / (1 + |x|)."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=4096, dim=393216),
    "small": dict(batch_size=64, dim=4096),
    "ragged": dict(batch_size=4099, dim=10007),
}

EXPLOITS = [
    "The published draw is uniform on [0, 1): the absolute value changes nothing, so x / (1 + x) passes.",
]


class Model(nn.Module):
    def forward(self, x):
        return x / (1 + torch.abs(x))


def get_inputs(batch_size=4096, dim=393216):
    return [torch.rand(batch_size, dim)]


def get_init_inputs(**sizes):
    return []


def get_flops(batch_size=4096, dim=393216):
    # per element: absolute value, addition, division
    return 3 * batch_size * dim
