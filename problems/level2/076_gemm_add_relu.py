"""Linear layer without bias, addition of a bias of its own, ReLU."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=1024, in_features=8192, out_features=8192),
    "small": dict(batch_size=64, in_features=256, out_features=256),
    "llm": dict(batch_size=2000, in_features=4096, out_features=11008),
}

CENTRED = 4.0  # by initial weights its own bias leaves zeros in a seventh of the columns or more


class Model(nn.Module):
    def __init__(self, in_features, out_features, bias_shape):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features, bias=False)
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x):
        x = self.gemm(x)
        x = x + self.bias
        return torch.relu(x)


def get_inputs(batch_size=1024, in_features=8192, **sizes):
    return [torch.rand(batch_size, in_features)]


def get_init_inputs(in_features=8192, out_features=8192, **sizes):
    return [in_features, out_features, (out_features,)]


def get_flops(batch_size=1024, in_features=8192, out_features=8192):
    # matmul; per output: bias, comparison
    return 2 * batch_size * in_features * out_features + 2 * batch_size * out_features
