"""Matrix product with a short inner dimension and a large output."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(m=32768, k=64, n=32768),
    "small": dict(m=512, k=64, n=512),
    "llm": dict(m=8192, k=64, n=14336),
}


class Model(nn.Module):
    def forward(self, A, B):
        return torch.matmul(A, B)


def get_inputs(m=32768, k=64, n=32768):
    return [torch.rand(m, k), torch.rand(k, n)]


def get_init_inputs(**sizes):
    return []


def get_flops(m=32768, k=64, n=32768):
    return 2 * m * k * n
