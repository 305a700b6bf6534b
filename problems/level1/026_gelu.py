"""Gaussian error linear unit (exact, by the error function), elementwise."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=4096, dim=393216),
    "small": dict(batch_size=64, dim=4096),
    "llm": dict(batch_size=8192, dim=14336),
}

EXPLOITS = [
    "The published draw is uniform on [0, 1): a quartic fitted to that interval is within 5e-5 and passes.",
]


class Model(nn.Module):
    def forward(self, x):
        return F.gelu(x)


def get_inputs(batch_size=4096, dim=393216):
    return [torch.rand(batch_size, dim)]


def get_init_inputs(**sizes):
    return []


def get_flops(batch_size=4096, dim=393216):
    # per element: scaling, error function, addition, halving, product
    return 5 * batch_size * dim
