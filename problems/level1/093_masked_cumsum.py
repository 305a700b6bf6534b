"""Cumulative sum along the rows of the elements that a boolean mask keeps."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=32768, dim=32768),
    "small": dict(batch_size=64, dim=4096),
    "ragged": dict(batch_size=1999, dim=10007),
}

DOMAIN = {"x": "real", "mask": "mask"}


class Model(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x, mask):
        return torch.cumsum(x * mask, dim=self.dim)


def get_inputs(batch_size=32768, dim=32768):
    return [torch.rand(batch_size, dim), torch.randint(0, 2, (batch_size, dim)).bool()]


def get_init_inputs(**sizes):
    return [1]


def get_flops(batch_size=32768, dim=32768):
    # per element: product, sum
    return 2 * batch_size * dim
