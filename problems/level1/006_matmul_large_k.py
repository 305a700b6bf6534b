"""Matrix product with a very long inner dimension and a small output."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(m=256, k=524288, n=256),
    "small": dict(m=64, k=16384, n=64),
    "ragged": dict(m=193, k=100003, n=257),
}

EXPLOITS = [
    "At the published size every output is k / 4 to about 1e-3 relative: a constant passes at 1e-2.",
]


class Model(nn.Module):
    def forward(self, A, B):
        return torch.matmul(A, B)


def get_inputs(m=256, k=524288, n=256):
    return [torch.rand(m, k), torch.rand(k, n)]


def get_init_inputs(**sizes):
    return []


def get_flops(m=256, k=524288, n=256):
    return 2 * m * k * n
