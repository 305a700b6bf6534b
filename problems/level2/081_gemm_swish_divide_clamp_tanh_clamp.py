"""Linear layer, x * sigmoid(x), division by 2, clamp to [-1, 1], tanh, the same clamp."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=1024, in_features=8192, out_features=8192),
    "small": dict(batch_size=64, in_features=256, out_features=256),
    "llm": dict(batch_size=2000, in_features=4096, out_features=11008),
}

EXPLOITS = [
    "The layer's outputs have a standard deviation of 1/3, so the first clamp is never reached and leaving "
    "it out passes.",
]


class Model(nn.Module):
    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features, bias=bias)

    def forward(self, x):
        x = self.gemm(x)
        x = x * torch.sigmoid(x)
        x = x / 2.0
        x = torch.clamp(x, -1.0, 1.0)
        x = torch.tanh(x)
        return torch.clamp(x, -1.0, 1.0)


def get_inputs(batch_size=1024, in_features=8192, **sizes):
    return [torch.rand(batch_size, in_features)]


def get_init_inputs(in_features=8192, out_features=8192, **sizes):
    return [in_features, out_features]


def get_flops(batch_size=1024, in_features=8192, out_features=8192):
    # matmul; per output: bias, sigmoid (4), product, division, clamp (2), tanh, clamp (2)
    return 2 * batch_size * in_features * out_features + 12 * batch_size * out_features
