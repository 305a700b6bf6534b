"""Rows of a matrix divided by their Euclidean norm."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=32768, dim=65535),
    "small": dict(batch_size=64, dim=4095),
    "llm": dict(batch_size=10000, dim=4096),
}

EXPLOITS = [
    "The norm of a row is sqrt(dim / 3) to about 2e-3 relative at the published size and outputs stay "
    "below 0.007: x * sqrt(3 / dim) passes at 1e-4, zeros pass at 1e-2.",
]


class Model(nn.Module):
    def forward(self, x):
        return x / torch.linalg.vector_norm(x, dim=1, keepdim=True)


def get_inputs(batch_size=32768, dim=65535):
    return [torch.rand(batch_size, dim)]


def get_init_inputs(**sizes):
    return []


def get_flops(batch_size=32768, dim=65535):
    # per element: square, sum, division; per row: root
    return 3 * batch_size * dim + batch_size
