"""Linear layer, batch norm, GELU, ReLU."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=16384, in_features=4096, out_features=4096),
    "small": dict(batch_size=256, in_features=128, out_features=128),
    "ragged": dict(batch_size=5001, in_features=1025, out_features=3001),
}

EXPLOITS = [
    "Batch norm weight and bias are initialised to ones and zeros, so leaving them out passes.",
]


class Model(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.batch_norm = nn.BatchNorm1d(out_features)

    def forward(self, x):
        x = self.gemm(x)
        x = self.batch_norm(x)
        x = F.gelu(x)
        return torch.relu(x)


def get_inputs(batch_size=16384, in_features=4096, **sizes):
    return [torch.rand(batch_size, in_features)]


def get_init_inputs(in_features=4096, out_features=4096, **sizes):
    return [in_features, out_features]


def get_flops(batch_size=16384, in_features=4096, out_features=4096):
    # matmul; per output: bias, batch norm (7), GELU (5), comparison
    return 2 * batch_size * in_features * out_features + 14 * batch_size * out_features
