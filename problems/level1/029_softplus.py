"""Softplus, elementwise: log(1 + exp(x))."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=4096, dim=393216),
    "small": dict(batch_size=64, dim=4096),
    "ragged": dict(batch_size=4099, dim=10007),
}

EXPLOITS = [
    "The published draw is uniform on [0, 1): a cubic fitted to that interval is within 4e-5 and passes.",
    "No input is large, so log(1 + exp(x)) passes although it overflows from x = 89 on.",
]


class Model(nn.Module):
    def forward(self, x):
        return F.softplus(x)


def get_inputs(batch_size=4096, dim=393216):
    return [torch.rand(batch_size, dim)]


def get_init_inputs(**sizes):
    return []


def get_flops(batch_size=4096, dim=393216):
    # per element: exponential, addition, logarithm
    return 3 * batch_size * dim
