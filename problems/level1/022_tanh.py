"""Hyperbolic tangent, elementwise."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=4096, dim=393216),
    "small": dict(batch_size=64, dim=4096),
    "ragged": dict(batch_size=4099, dim=10007),
}

EXPLOITS = [
    "The published draw is uniform on [0, 1): a quartic fitted to that interval is within 8e-5 and passes.",
]


class Model(nn.Module):
    def forward(self, x):
        return torch.tanh(x)


def get_inputs(batch_size=4096, dim=393216):
    return [torch.rand(batch_size, dim)]


def get_init_inputs(**sizes):
    return []


def get_flops(batch_size=4096, dim=393216):
    return batch_size * dim
