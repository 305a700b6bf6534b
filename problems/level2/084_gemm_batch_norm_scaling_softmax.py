"""Linear layer, batch norm, scaling by a parameter, softmax over the features."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=1024, in_features=8192, out_features=8192),
    "small": dict(batch_size=64, in_features=256, out_features=256),
    "ragged": dict(batch_size=511, in_features=2999, out_features=32003),
}

EXPLOITS = [
    "Scale and weight of the norm are initialised to ones and its bias to zeros, so leaving them out passes.",
]


class Model(nn.Module):
    def __init__(self, in_features, out_features, bn_eps=1e-5, bn_momentum=0.1, scale_shape=(1,)):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.bn = nn.BatchNorm1d(out_features, eps=bn_eps, momentum=bn_momentum)
        self.scale = nn.Parameter(torch.ones(scale_shape))

    def forward(self, x):
        x = self.gemm(x)
        x = self.bn(x)
        x = self.scale * x
        return torch.softmax(x, dim=1)


def get_inputs(batch_size=1024, in_features=8192, **sizes):
    return [torch.rand(batch_size, in_features)]


def get_init_inputs(in_features=8192, out_features=8192, **sizes):
    return [in_features, out_features, 1e-5, 0.1, (1,)]


def get_flops(batch_size=1024, in_features=8192, out_features=8192):
    # matmul; per output: bias, batch norm (7), scaling, softmax (5)
    return 2 * batch_size * in_features * out_features + 14 * batch_size * out_features
