"""Logarithm of the softmax over the rows of a matrix."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=4096, dim=393216),
    "small": dict(batch_size=64, dim=4096),
    "ragged": dict(batch_size=1000, dim=32003),
}

EXPLOITS = [
    "Logits are uniform on [0, 1): leaving out the row maximum passes, as no exponential overflows.",
    "The log-sum-exp of a row is log(dim) + 0.5413 to 2e-3 at the published size, so subtracting "
    "that constant passes at a tolerance of 1e-2.",
]


class Model(nn.Module):
    def __init__(self, dim=1):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        return F.log_softmax(x, dim=self.dim)


def get_inputs(batch_size=4096, dim=393216):
    return [torch.rand(batch_size, dim)]


def get_init_inputs(**sizes):
    return []


def get_flops(batch_size=4096, dim=393216):
    # per element: maximum, subtraction, exponential, sum, subtraction
    return 5 * batch_size * dim
