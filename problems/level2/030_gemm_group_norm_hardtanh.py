"""Linear layer, group norm over the features of each row, hardtanh."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=1024, in_features=8192, out_features=8192, num_groups=16),
    "small": dict(batch_size=64, in_features=256, out_features=256, num_groups=8),
    "ragged": dict(batch_size=1001, in_features=3001, out_features=3003, num_groups=11),
}

EXPLOITS = [
    "Group norm weight and bias are initialised to ones and zeros, so leaving them out passes.",
]


class Model(nn.Module):
    def __init__(self, in_features, out_features, num_groups, hardtanh_min, hardtanh_max):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.group_norm = nn.GroupNorm(num_groups, out_features)
        self.hardtanh = nn.Hardtanh(min_val=hardtanh_min, max_val=hardtanh_max)

    def forward(self, x):
        x = self.gemm(x)
        x = self.group_norm(x)
        return self.hardtanh(x)


def get_inputs(batch_size=1024, in_features=8192, **sizes):
    return [torch.rand(batch_size, in_features)]


def get_init_inputs(in_features=8192, out_features=8192, num_groups=16, **sizes):
    return [in_features, out_features, num_groups, -2.0, 2.0]


def get_flops(batch_size=1024, in_features=8192, out_features=8192, **sizes):
    # matmul; per output: bias, group norm (7), hardtanh (2)
    return 2 * batch_size * in_features * out_features + 10 * batch_size * out_features
