"""Matrix product of sizes that fit no tile and no alignment."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(m=8205, k=2949, n=5921),
    "small": dict(m=205, k=149, n=321),
    "llm": dict(m=37, k=4096, n=11008),
}


class Model(nn.Module):
    def forward(self, A, B):
        return torch.matmul(A, B)


def get_inputs(m=8205, k=2949, n=5921):
    return [torch.rand(m, k), torch.rand(k, n)]


def get_init_inputs(**sizes):
    return []


def get_flops(m=8205, k=2949, n=5921):
    return 2 * m * k * n
