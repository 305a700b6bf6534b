"""Linear layer, GELU (exact), softmax over the features."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=1024, in_features=8192, out_features=8192),
    "small": dict(batch_size=64, in_features=256, out_features=256),
    "llm": dict(batch_size=512, in_features=4096, out_features=32003),
}

EXPLOITS = [
    "At the published size outputs are about 1.2e-4 and at most 5e-4, so zeros pass at a tolerance of 1e-2.",
]


class Model(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)

    def forward(self, x):
        x = self.linear(x)
        x = F.gelu(x)
        return torch.softmax(x, dim=1)


def get_inputs(batch_size=1024, in_features=8192, **sizes):
    return [torch.rand(batch_size, in_features)]


def get_init_inputs(in_features=8192, out_features=8192, **sizes):
    return [in_features, out_features]


def get_flops(batch_size=1024, in_features=8192, out_features=8192):
    # matmul; per output: bias, GELU (5), softmax (5)
    return 2 * batch_size * in_features * out_features + 11 * batch_size * out_features
