"""Exponential linear unit, elementwise: x if positive, else alpha * (exp(x) - 1)."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=4096, dim=393216, alpha=1.0),
    "small": dict(batch_size=64, dim=4096, alpha=1.0),
    "ragged": dict(batch_size=4099, dim=10007, alpha=1.0),
}

EXPLOITS = [
    "The published draw is uniform on [0, 1): the negative branch is never taken, so returning x passes.",
]


class Model(nn.Module):
    def __init__(self, alpha=1.0):
        super().__init__()
        self.alpha = alpha

    def forward(self, x):
        return F.elu(x, alpha=self.alpha)


def get_inputs(batch_size=4096, dim=393216, **sizes):
    return [torch.rand(batch_size, dim)]


def get_init_inputs(alpha=1.0, **sizes):
    return [alpha]


def get_flops(batch_size=4096, dim=393216, **sizes):
    # per element: comparison, exponential, subtraction (with alpha = 1 there is nothing to scale)
    return 3 * batch_size * dim
