"""Linear layer, average of neighbouring features, GELU (exact), scaling, maximum of each row."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=1024, in_features=8192, out_features=8192),
    "small": dict(batch_size=64, in_features=256, out_features=256),
    "ragged": dict(batch_size=1001, in_features=2999, out_features=4099),
}

CENTRED = 1.0  # by initial weights some units are never the largest

EXPLOITS = [
    "For any input, averaging 16 rows of the weight beforehand gives the pooled values from a matmul 16 "
    "times smaller.",
]


class Model(nn.Module):
    def __init__(self, in_features, out_features, pool_kernel_size, scale_factor):
        super().__init__()
        self.matmul = nn.Linear(in_features, out_features)
        self.pool_kernel_size = pool_kernel_size
        self.scale_factor = scale_factor

    def forward(self, x):
        x = self.matmul(x)
        x = F.avg_pool1d(x.unsqueeze(1), self.pool_kernel_size).squeeze(1)
        x = F.gelu(x)
        x = x * self.scale_factor
        return torch.max(x, dim=1).values


def get_inputs(batch_size=1024, in_features=8192, **sizes):
    return [torch.rand(batch_size, in_features)]


def get_init_inputs(in_features=8192, out_features=8192, **sizes):
    return [in_features, out_features, 16, 2.0]


def get_flops(batch_size=1024, in_features=8192, out_features=8192):
    pooled = batch_size * (out_features // 16)
    # matmul; per output of the layer: bias; per pooled value: window of 16, GELU (5), scaling, maximum
    return 2 * batch_size * in_features * out_features + batch_size * out_features + 23 * pooled
