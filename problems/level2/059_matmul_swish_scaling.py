"""Linear layer, x * sigmoid(x), scaling by a constant."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=128, in_features=32768, out_features=32768),
    "small": dict(batch_size=64, in_features=256, out_features=256),
    "llm": dict(batch_size=2000, in_features=4096, out_features=11008),
}


class Model(nn.Module):
    def __init__(self, in_features, out_features, scaling_factor):
        super().__init__()
        self.matmul = nn.Linear(in_features, out_features)
        self.scaling_factor = scaling_factor

    def forward(self, x):
        x = self.matmul(x)
        x = x * torch.sigmoid(x)
        return x * self.scaling_factor


def get_inputs(batch_size=128, in_features=32768, **sizes):
    return [torch.rand(batch_size, in_features)]


def get_init_inputs(in_features=32768, out_features=32768, **sizes):
    return [in_features, out_features, 2.0]


def get_flops(batch_size=128, in_features=32768, out_features=32768):
    # matmul; per output: bias, sigmoid (4), product, scaling
    return 2 * batch_size * in_features * out_features + 7 * batch_size * out_features
