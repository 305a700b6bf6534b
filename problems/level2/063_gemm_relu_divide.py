"""Linear layer, ReLU, division by a constant."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=1024, in_features=8192, out_features=8192, divisor=2.0),
    "small": dict(batch_size=64, in_features=256, out_features=256, divisor=2.0),
    "llm": dict(batch_size=2000, in_features=4096, out_features=11008, divisor=2.0),
}

CENTRED = 1.0  # by initial weights some units are zero for all inputs


class Model(nn.Module):
    def __init__(self, in_features, out_features, divisor):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.divisor = divisor

    def forward(self, x):
        x = self.linear(x)
        x = torch.relu(x)
        return x / self.divisor


def get_inputs(batch_size=1024, in_features=8192, **sizes):
    return [torch.rand(batch_size, in_features)]


def get_init_inputs(in_features=8192, out_features=8192, divisor=2.0, **sizes):
    return [in_features, out_features, divisor]


def get_flops(batch_size=1024, in_features=8192, out_features=8192, **sizes):
    # matmul; per output: bias, comparison, division
    return 2 * batch_size * in_features * out_features + 3 * batch_size * out_features
