"""Exclusive cumulative sum along the rows: out[j] = sum of x[k] for k < j.

The first column is zero, the last column of the input is not read.
"""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=32768, dim=32768),
    "small": dict(batch_size=64, dim=4096),
    "ragged": dict(batch_size=1999, dim=10007),
}


class Model(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        zeros = torch.zeros_like(x.select(self.dim, 0).unsqueeze(self.dim))
        sums = torch.cumsum(x.narrow(self.dim, 0, x.size(self.dim) - 1), dim=self.dim)
        return torch.cat([zeros, sums], dim=self.dim)


def get_inputs(batch_size=32768, dim=32768):
    return [torch.rand(batch_size, dim)]


def get_init_inputs(**sizes):
    return [1]


def get_flops(batch_size=32768, dim=32768):
    return batch_size * (dim - 1)
