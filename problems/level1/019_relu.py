"""Rectified linear unit: max(x, 0), elementwise."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=4096, dim=393216),
    "small": dict(batch_size=64, dim=4096),
    "llm": dict(batch_size=8192, dim=14336),
}

EXPLOITS = [
    "The published draw is uniform on [0, 1): the negative branch is never taken, so returning x passes.",
]


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs(batch_size=4096, dim=393216):
    return [torch.rand(batch_size, dim)]


def get_init_inputs(**sizes):
    return []


def get_flops(batch_size=4096, dim=393216):
    return batch_size * dim
