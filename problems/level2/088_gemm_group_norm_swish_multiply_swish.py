"""Linear layer, group norm, x * sigmoid(x), product with a parameter, x * sigmoid(x) again."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=1024, in_features=8192, out_features=8192, num_groups=256),
    "small": dict(batch_size=64, in_features=256, out_features=256, num_groups=8),
    "llm": dict(batch_size=2000, in_features=4096, out_features=11008, num_groups=344),
}

EXPLOITS = [
    "Weight and bias of the norm are initialised to ones and zeros, so leaving them out passes.",
]


class Model(nn.Module):
    def __init__(self, in_features, out_features, num_groups, multiply_weight_shape):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.group_norm = nn.GroupNorm(num_groups, out_features)
        self.multiply_weight = nn.Parameter(torch.randn(multiply_weight_shape))

    def forward(self, x):
        x = self.gemm(x)
        x = self.group_norm(x)
        x = x * torch.sigmoid(x)
        x = x * self.multiply_weight
        return x * torch.sigmoid(x)


def get_inputs(batch_size=1024, in_features=8192, **sizes):
    return [torch.rand(batch_size, in_features)]


def get_init_inputs(in_features=8192, out_features=8192, num_groups=256, **sizes):
    return [in_features, out_features, num_groups, (out_features,)]


def get_flops(batch_size=1024, in_features=8192, out_features=8192, **sizes):
    # matmul; per output: bias, group norm (7), product; twice sigmoid (4) and its product
    return 2 * batch_size * in_features * out_features + 19 * batch_size * out_features
