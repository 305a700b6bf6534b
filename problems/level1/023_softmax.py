"""Softmax over the rows of a matrix."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=4096, dim=393216),
    "small": dict(batch_size=64, dim=4096),
    "ragged": dict(batch_size=1000, dim=32003),
}

EXPLOITS = [
    "Every output is about 1 / dim, so an absolute tolerance of 1e-4 accepts zeros at the published size.",
]


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=1)


def get_inputs(batch_size=4096, dim=393216):
    return [torch.rand(batch_size, dim)]


def get_init_inputs(**sizes):
    return []


def get_flops(batch_size=4096, dim=393216):
    # per element: maximum, subtraction, exponential, sum, division
    return 5 * batch_size * dim
