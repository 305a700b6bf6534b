"""Matrix product, division by 2, sum over the features, scaling."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=1024, input_size=8192, hidden_size=8192, scaling_factor=1.5),
    "small": dict(batch_size=64, input_size=256, hidden_size=256, scaling_factor=1.5),
    "ragged": dict(batch_size=1001, input_size=3001, hidden_size=5003, scaling_factor=1.5),
}


class Model(nn.Module):
    def __init__(self, input_size, hidden_size, scaling_factor):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(hidden_size, input_size))
        self.scaling_factor = scaling_factor

    def forward(self, x):
        x = torch.matmul(x, self.weight.T)
        x = x / 2
        x = torch.sum(x, dim=1, keepdim=True)
        return x * self.scaling_factor


def get_inputs(batch_size=1024, input_size=8192, **sizes):
    return [torch.rand(batch_size, input_size)]


def get_init_inputs(input_size=8192, hidden_size=8192, scaling_factor=1.5, **sizes):
    return [input_size, hidden_size, scaling_factor]


def get_flops(batch_size=1024, input_size=8192, hidden_size=8192, **sizes):
    # matmul; per product: division, sum; per row: scaling
    return 2 * batch_size * input_size * hidden_size + 2 * batch_size * hidden_size + batch_size
