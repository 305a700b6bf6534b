"""Cumulative sum along the rows, from the end: out[j] = sum of x[k] for k >= j."""

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
        return torch.cumsum(x.flip(self.dim), dim=self.dim).flip(self.dim)


def get_inputs(batch_size=32768, dim=32768):
    return [torch.rand(batch_size, dim)]


def get_init_inputs(**sizes):
    return [1]


def get_flops(batch_size=32768, dim=32768):
    return batch_size * dim
