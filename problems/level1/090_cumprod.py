"""Cumulative product along the rows."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=32768, dim=32768),
    "small": dict(batch_size=64, dim=4096),
    "ragged": dict(batch_size=1999, dim=10007),
}

DOMAIN = "factor"  # near 1 in size: of other draws all but the first products are zero, or too large

EXPLOITS = [
    "Products of draws from [0, 1) fall below 1e-4 within a few dozen columns: zeros after these pass as published.",
    "They underflow to zero after about a hundred columns, so over 99 % of the output is exactly zero.",
]


class Model(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        return torch.cumprod(x, dim=self.dim)


def get_inputs(batch_size=32768, dim=32768):
    return [torch.rand(batch_size, dim)]


def get_init_inputs(**sizes):
    return [1]


def get_flops(batch_size=32768, dim=32768):
    return batch_size * dim
