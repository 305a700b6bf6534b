"""Matrix product with the first factor stored transposed: C = A.T @ B."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(m=2048, k=8192, n=4096),
    "small": dict(m=128, k=512, n=256),
    "ragged": dict(m=1999, k=3001, n=2503),
}


class Model(nn.Module):
    def forward(self, A, B):
        return torch.matmul(A.T, B)


def get_inputs(m=2048, k=8192, n=4096):
    return [torch.rand(k, m), torch.rand(k, n)]


def get_init_inputs(**sizes):
    return []


def get_flops(m=2048, k=8192, n=4096):
    return 2 * m * k * n
