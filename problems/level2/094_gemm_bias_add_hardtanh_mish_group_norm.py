"""Linear layer, addition of a further bias, hardtanh, Mish, group norm over groups of features."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=1024, in_features=8192, out_features=8192, num_groups=256),
    "small": dict(batch_size=64, in_features=256, out_features=256, num_groups=8),
    "llm": dict(batch_size=2000, in_features=4096, out_features=11008, num_groups=344),
}

EXPLOITS = [
    "Weight and bias of the norm are initialised to ones and zeros, so leaving them out passes.",
]


class Model(nn.Module):
    def __init__(self, in_features, out_features, bias_shape, num_groups):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.groupnorm = nn.GroupNorm(num_groups, out_features)

    def forward(self, x):
        x = self.gemm(x)
        x = x + self.bias
        x = F.hardtanh(x)
        x = F.mish(x)
        return self.groupnorm(x)


def get_inputs(batch_size=1024, in_features=8192, **sizes):
    return [torch.rand(batch_size, in_features)]


def get_init_inputs(in_features=8192, out_features=8192, num_groups=256, **sizes):
    return [in_features, out_features, (out_features,), num_groups]


def get_flops(batch_size=1024, in_features=8192, out_features=8192, **sizes):
    # matmul; per output: two biases, hardtanh (2), Mish (5), group norm (7)
    return 2 * batch_size * in_features * out_features + 16 * batch_size * out_features
