"""Linear layer, minimum with a scalar parameter, subtraction of the same parameter."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=128, in_features=16384, out_features=16384),
    "small": dict(batch_size=64, in_features=256, out_features=256),
    "llm": dict(batch_size=2000, in_features=4096, out_features=11008),
}

EXPLOITS = [
    "The layer's outputs have a standard deviation of 1/3 and practically never reach the constant 2, so "
    "leaving the minimum out passes.",
]


class Model(nn.Module):
    def __init__(self, in_features, out_features, constant):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.constant = nn.Parameter(torch.tensor(constant))

    def forward(self, x):
        x = self.linear(x)
        x = torch.minimum(x, self.constant)
        return x - self.constant


def get_inputs(batch_size=128, in_features=16384, **sizes):
    return [torch.rand(batch_size, in_features)]


def get_init_inputs(in_features=16384, out_features=16384, **sizes):
    return [in_features, out_features, 2.0]


def get_flops(batch_size=128, in_features=16384, out_features=16384):
    # matmul; per output: bias, comparison, subtraction
    return 2 * batch_size * in_features * out_features + 3 * batch_size * out_features
