"""Index of the minimum over the middle dimension, the first one where several are equal."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=128, dim1=4096, dim2=4095),
    "small": dict(batch_size=4, dim1=256, dim2=255),
    "ragged": dict(batch_size=30, dim1=1999, dim2=1021),
    "codebook": dict(batch_size=16, dim1=8192, dim2=1024),
}

EXPLOITS = [
    "Inputs stay below one, so a search that starts from one passes.",
]


class Model(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        return torch.argmin(x, dim=self.dim)


def get_inputs(batch_size=128, dim1=4096, dim2=4095):
    return [torch.rand(batch_size, dim1, dim2)]


def get_init_inputs(**sizes):
    return [1]


def get_flops(batch_size=128, dim1=4096, dim2=4095):
    return batch_size * dim1 * dim2
