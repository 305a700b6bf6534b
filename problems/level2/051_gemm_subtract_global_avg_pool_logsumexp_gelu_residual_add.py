"""Linear layer, subtraction of a parameter, mean and log-sum-exp of each row, GELU, added to the input."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=2048, in_features=8192, out_features=8192),
    "small": dict(batch_size=64, in_features=256, out_features=256),
    "ragged": dict(batch_size=1001, in_features=4099, out_features=2999),
}

EXPLOITS = [
    "The published weights add only a few thousandths to every row, so returning the input passes at a "
    "tolerance of 1e-2.",
    "For any input, log-sum-exp over one element is the identity and the mean may be taken over the weight's "
    "rows first: a matrix-vector product replaces the matmul.",
]


class Model(nn.Module):
    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features, bias=bias)
        self.subtract = nn.Parameter(torch.randn(out_features))

    def forward(self, x):
        residual = x
        x = self.gemm(x)
        x = x - self.subtract
        x = torch.mean(x, dim=1, keepdim=True)
        x = torch.logsumexp(x, dim=1, keepdim=True)
        x = F.gelu(x)
        return x + residual


def get_inputs(batch_size=2048, in_features=8192, **sizes):
    return [torch.rand(batch_size, in_features)]


def get_init_inputs(in_features=8192, out_features=8192, **sizes):
    return [in_features, out_features]


def get_flops(batch_size=2048, in_features=8192, out_features=8192):
    # matmul; per output of the layer: bias, subtraction, mean;
    # per row: log-sum-exp (4) of one element, GELU (5); per input: the residual
    matmul = 2 * batch_size * in_features * out_features
    return matmul + 3 * batch_size * out_features + 9 * batch_size + batch_size * in_features
