"""Linear layer, scaling by a constant, hardtanh, GELU (exact)."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=2048, in_features=8192, out_features=8192),
    "small": dict(batch_size=64, in_features=256, out_features=256),
    "llm": dict(batch_size=2000, in_features=4096, out_features=11008),
}

EXPLOITS = [
    "The scaled outputs have a standard deviation of about 0.17 and never reach -2 or 2, so leaving hardtanh "
    "out passes.",
]


class Model(nn.Module):
    def __init__(self, in_features, out_features, scaling_factor, hardtanh_min, hardtanh_max):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.scaling_factor = scaling_factor
        self.hardtanh_min = hardtanh_min
        self.hardtanh_max = hardtanh_max

    def forward(self, x):
        x = self.gemm(x)
        x = x * self.scaling_factor
        x = F.hardtanh(x, self.hardtanh_min, self.hardtanh_max)
        return F.gelu(x)


def get_inputs(batch_size=2048, in_features=8192, **sizes):
    return [torch.rand(batch_size, in_features)]


def get_init_inputs(in_features=8192, out_features=8192, **sizes):
    return [in_features, out_features, 0.5, -2, 2]


def get_flops(batch_size=2048, in_features=8192, out_features=8192):
    # matmul; per output: bias, scaling, hardtanh (2), GELU (5)
    return 2 * batch_size * in_features * out_features + 9 * batch_size * out_features
