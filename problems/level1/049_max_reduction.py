"""Maximum over the middle dimension."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=128, dim1=4096, dim2=4095),
    "small": dict(batch_size=4, dim1=256, dim2=255),
    "ragged": dict(batch_size=30, dim1=1999, dim2=1021),
}

EXPLOITS = [
    "The maximum of 4096 draws from [0, 1) is 0.9998 to about 3e-4: the constant 1 passes at 1e-2.",
    "Inputs are never negative, so a maximum that starts from zero passes.",
]


class Model(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        return torch.max(x, dim=self.dim)[0]


def get_inputs(batch_size=128, dim1=4096, dim2=4095):
    return [torch.rand(batch_size, dim1, dim2)]


def get_init_inputs(**sizes):
    return [1]


def get_flops(batch_size=128, dim1=4096, dim2=4095):
    return batch_size * dim1 * dim2
