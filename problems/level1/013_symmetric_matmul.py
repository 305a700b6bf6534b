"""Product of two symmetric matrices (it is not symmetric itself)."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(n=4096),
    "small": dict(n=256),
    "ragged": dict(n=1999),
}

DOMAIN = {"A": "symmetric", "B": "symmetric"}


class Model(nn.Module):
    def forward(self, A, B):
        return torch.matmul(A, B)


def get_inputs(n=4096):
    a, b = torch.rand(n, n), torch.rand(n, n)
    return [(a + a.T) / 2, (b + b.T) / 2]


def get_init_inputs(**sizes):
    return []


def get_flops(n=4096):
    return 2 * n**3
