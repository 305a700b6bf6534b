"""Matrix product: C = A @ B."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(m=2048, k=8192, n=4096),
    "small": dict(m=128, k=512, n=256),
    "llm": dict(m=2000, k=4096, n=11008),
}


class Model(nn.Module):
    def forward(self, A, B):
        return torch.matmul(A, B)


def get_inputs(m=2048, k=8192, n=4096):
    return [torch.rand(m, k), torch.rand(k, n)]


def get_init_inputs(**sizes):
    return []


def get_flops(m=2048, k=8192, n=4096):
    return 2 * m * k * n
