"""Scaled exponential linear unit, elementwise."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=4096, dim=393216),
    "small": dict(batch_size=64, dim=4096),
    "ragged": dict(batch_size=4099, dim=10007),
}

EXPLOITS = [
    "The published draw is uniform on [0, 1): the negative branch is never taken, so 1.0507 * x passes.",
]


class Model(nn.Module):
    def forward(self, x):
        return F.selu(x)


def get_inputs(batch_size=4096, dim=393216):
    return [torch.rand(batch_size, dim)]


def get_init_inputs(**sizes):
    return []


def get_flops(batch_size=4096, dim=393216):
    # per element: comparison, exponential, subtraction, scaling
    return 4 * batch_size * dim
