"""Linear layer, scaling per feature, batch norm."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=1024, in_features=8192, out_features=8192),
    "small": dict(batch_size=64, in_features=256, out_features=256),
    "ragged": dict(batch_size=1001, in_features=3001, out_features=5003),
}

EXPLOITS = [
    "Batch norm weight and bias are initialised to ones and zeros, so leaving them out passes.",
]


class Model(nn.Module):
    def __init__(self, in_features, out_features, scale_shape, eps=1e-5, momentum=0.1):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.scale = nn.Parameter(torch.randn(scale_shape))
        self.bn = nn.BatchNorm1d(out_features, eps=eps, momentum=momentum)

    def forward(self, x):
        x = self.gemm(x)
        x = x * self.scale
        return self.bn(x)


def get_inputs(batch_size=1024, in_features=8192, **sizes):
    return [torch.rand(batch_size, in_features)]


def get_init_inputs(in_features=8192, out_features=8192, **sizes):
    return [in_features, out_features, (out_features,)]


def get_flops(batch_size=1024, in_features=8192, out_features=8192):
    # matmul; per output: bias, scaling, batch norm (7)
    return 2 * batch_size * in_features * out_features + 9 * batch_size * out_features
