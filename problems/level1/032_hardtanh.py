"""Hard tanh, elementwise: clamp to [-1, 1]."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=4096, dim=393216),
    "small": dict(batch_size=64, dim=4096),
    "ragged": dict(batch_size=4099, dim=10007),
}

EXPLOITS = [
    "The published draw is uniform on [0, 1): neither clamp ever acts, so returning x passes.",
]


class Model(nn.Module):
    def forward(self, x):
        return F.hardtanh(x, min_val=-1.0, max_val=1.0)


def get_inputs(batch_size=4096, dim=393216):
    return [torch.rand(batch_size, dim)]


def get_init_inputs(**sizes):
    return []


def get_flops(batch_size=4096, dim=393216):
    # per element: two comparisons
    return 2 * batch_size * dim
