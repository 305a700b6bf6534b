"""Linear layer, group norm, minimum of each row, addition of a bias: an outer sum.

The (batch, 1) minima and the (1, features, 1, 1) bias broadcast to (1, features, batch, 1).
"""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=1024, in_features=8192, out_features=8192, num_groups=512),
    "small": dict(batch_size=64, in_features=256, out_features=256, num_groups=16),
    "llm": dict(batch_size=2000, in_features=4096, out_features=11008, num_groups=688),
}

CENTRED = 1.0  # by initial weights some units are never the smallest

EXPLOITS = [
    "Weight and bias of the norm are initialised to ones and zeros, so leaving them out passes.",
]


class Model(nn.Module):
    def __init__(self, in_features, out_features, num_groups, bias_shape):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.group_norm = nn.GroupNorm(num_groups, out_features)
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x):
        x = self.gemm(x)
        x = self.group_norm(x)
        x = torch.min(x, dim=1, keepdim=True).values
        return x + self.bias


def get_inputs(batch_size=1024, in_features=8192, **sizes):
    return [torch.rand(batch_size, in_features)]


def get_init_inputs(in_features=8192, out_features=8192, num_groups=512, **sizes):
    return [in_features, out_features, num_groups, (1, out_features, 1, 1)]


def get_flops(batch_size=1024, in_features=8192, out_features=8192, **sizes):
    # matmul; per output of the layer: bias, group norm (7), minimum; per output: sum
    return 2 * batch_size * in_features * out_features + 10 * batch_size * out_features
