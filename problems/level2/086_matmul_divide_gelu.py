"""Linear layer, division by a constant, GELU (exact, by the error function)."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=1024, input_size=8192, output_size=8192, divisor=10.0),
    "small": dict(batch_size=64, input_size=256, output_size=256, divisor=10.0),
    "llm": dict(batch_size=2000, input_size=4096, output_size=11008, divisor=10.0),
}


class Model(nn.Module):
    def __init__(self, input_size, output_size, divisor):
        super().__init__()
        self.linear = nn.Linear(input_size, output_size)
        self.divisor = divisor

    def forward(self, x):
        x = self.linear(x)
        x = x / self.divisor
        return F.gelu(x)


def get_inputs(batch_size=1024, input_size=8192, **sizes):
    return [torch.rand(batch_size, input_size)]


def get_init_inputs(input_size=8192, output_size=8192, divisor=10.0, **sizes):
    return [input_size, output_size, divisor]


def get_flops(batch_size=1024, input_size=8192, output_size=8192, **sizes):
    # matmul; per output: bias, division, GELU (5)
    return 2 * batch_size * input_size * output_size + 7 * batch_size * output_size
