"""Linear layer, then its scaled sigmoid added to it."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=1024, input_size=8192, hidden_size=8192),
    "small": dict(batch_size=64, input_size=256, hidden_size=256),
    "llm": dict(batch_size=2000, input_size=4096, hidden_size=11008),
}


class Model(nn.Module):
    def __init__(self, input_size, hidden_size, scaling_factor):
        super().__init__()
        self.gemm = nn.Linear(input_size, hidden_size)
        self.scaling_factor = scaling_factor

    def forward(self, x):
        x = self.gemm(x)
        gate = torch.sigmoid(x)
        return gate * self.scaling_factor + x


def get_inputs(batch_size=1024, input_size=8192, **sizes):
    return [torch.rand(batch_size, input_size)]


def get_init_inputs(input_size=8192, hidden_size=8192, **sizes):
    return [input_size, hidden_size, 2.0]


def get_flops(batch_size=1024, input_size=8192, hidden_size=8192):
    # matmul; per output: bias, sigmoid (4), scaling, sum
    return 2 * batch_size * input_size * hidden_size + 7 * batch_size * hidden_size
