"""Linear layer, scaling, leaky ReLU."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=1024, in_features=8192, out_features=8192, multiplier=2.0, negative_slope=0.1),
    "small": dict(batch_size=64, in_features=256, out_features=256, multiplier=2.0, negative_slope=0.1),
    "ragged": dict(batch_size=1001, in_features=3001, out_features=5003, multiplier=2.0, negative_slope=0.1),
}


class Model(nn.Module):
    def __init__(self, in_features, out_features, multiplier, negative_slope):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.multiplier = multiplier
        self.leaky_relu = nn.LeakyReLU(negative_slope)

    def forward(self, x):
        x = self.gemm(x)
        x = x * self.multiplier
        return self.leaky_relu(x)


def get_inputs(batch_size=1024, in_features=8192, **sizes):
    return [torch.rand(batch_size, in_features)]


def get_init_inputs(in_features=8192, out_features=8192, multiplier=2.0, negative_slope=0.1, **sizes):
    return [in_features, out_features, multiplier, negative_slope]


def get_flops(batch_size=1024, in_features=8192, out_features=8192, **sizes):
    # matmul; per output: bias, scaling, leaky ReLU (2)
    return 2 * batch_size * in_features * out_features + 4 * batch_size * out_features
