"""Linear layer, scaling, addition of the unscaled output."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=16384, in_features=4096, out_features=4096, scaling_factor=0.5),
    "small": dict(batch_size=256, in_features=128, out_features=128, scaling_factor=0.5),
    "llm": dict(batch_size=2000, in_features=4096, out_features=11008, scaling_factor=0.5),
}


class Model(nn.Module):
    def __init__(self, in_features, out_features, scaling_factor):
        super().__init__()
        self.matmul = nn.Linear(in_features, out_features)
        self.scaling_factor = scaling_factor

    def forward(self, x):
        x = self.matmul(x)
        return x * self.scaling_factor + x


def get_inputs(batch_size=16384, in_features=4096, **sizes):
    return [torch.rand(batch_size, in_features)]


def get_init_inputs(in_features=4096, out_features=4096, scaling_factor=0.5, **sizes):
    return [in_features, out_features, scaling_factor]


def get_flops(batch_size=16384, in_features=4096, out_features=4096, **sizes):
    # matmul; per output: bias, scaling, addition
    return 2 * batch_size * in_features * out_features + 3 * batch_size * out_features
