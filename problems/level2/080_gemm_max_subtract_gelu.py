"""Linear layer, maximum of each row, minus its own mean, GELU: always zero."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=1024, in_features=8192, out_features=8192),
    "small": dict(batch_size=64, in_features=256, out_features=256),
    "llm": dict(batch_size=512, in_features=4096, out_features=32003),
}

EXPLOITS = [
    "The mean of the single maximum is the maximum itself: every output is exactly 0 for every input, so zeros pass.",
]

TRIVIAL = dict.fromkeys(
    ["zeros", "mean", "first sample", "other output", "previous output"],
    "The maximum over one dimension, minus its own mean over that dimension of size 1, is 0 for every input.",
)


class Model(nn.Module):
    def __init__(self, in_features, out_features, max_dim):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.max_dim = max_dim

    def forward(self, x):
        x = self.gemm(x)
        x = torch.max(x, dim=self.max_dim, keepdim=True).values
        x = x - torch.mean(x, dim=1, keepdim=True)
        return F.gelu(x)


def get_inputs(batch_size=1024, in_features=8192, **sizes):
    return [torch.rand(batch_size, in_features)]


def get_init_inputs(in_features=8192, out_features=8192, **sizes):
    return [in_features, out_features, 1]


def get_flops(batch_size=1024, in_features=8192, out_features=8192):
    # matmul; per output of the layer: bias, maximum; per row: mean, subtraction, GELU (5)
    return 2 * batch_size * in_features * out_features + 2 * batch_size * out_features + 7 * batch_size
