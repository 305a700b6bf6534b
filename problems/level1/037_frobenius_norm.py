"""Tensor divided by its Frobenius norm, one norm for the whole tensor."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=112, features=64, height=512, width=512),
    "small": dict(batch_size=4, features=64, height=32, width=32),
    "ragged": dict(batch_size=30, features=100, height=127, width=129),
}

# Sums squares: beside rare elements of the size of a sum all others would give zeros.
SQUARED = True

EXPLOITS = [
    "Every output is below 4e-5 at the published size: an absolute tolerance of 1e-4 accepts zeros.",
]


class Model(nn.Module):
    def forward(self, x):
        return x / torch.linalg.vector_norm(x)


def get_inputs(batch_size=112, features=64, height=512, width=512):
    return [torch.rand(batch_size, features, height, width)]


def get_init_inputs(**sizes):
    return []


def get_flops(batch_size=112, features=64, height=512, width=512):
    # per element: square, sum, division; once: root
    return 3 * batch_size * features * height * width + 1
