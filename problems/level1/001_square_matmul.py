"""Square matrix product: C = A @ B."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(n=4096),
    "small": dict(n=256),
    "ragged": dict(n=1999),
}


class Model(nn.Module):
    def forward(self, A, B):
        return torch.matmul(A, B)


def get_inputs(n=4096):
    return [torch.rand(n, n), torch.rand(n, n)]


def get_init_inputs(**sizes):
    return []


def get_flops(n=4096):
    return 2 * n**3
