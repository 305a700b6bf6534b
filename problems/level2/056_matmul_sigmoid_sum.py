"""Linear layer, sigmoid, sum of each row."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=128, input_size=32768, hidden_size=32768),
    "small": dict(batch_size=64, input_size=256, hidden_size=256),
    "llm": dict(batch_size=2000, input_size=4096, hidden_size=11008),
}

EXPLOITS = [
    "Every sum lies within about 0.1 % of hidden_size / 2, so that constant passes at a tolerance of 1e-2.",
]


class Model(nn.Module):
    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.linear = nn.Linear(input_size, hidden_size)

    def forward(self, x):
        x = self.linear(x)
        x = torch.sigmoid(x)
        return torch.sum(x, dim=1, keepdim=True)


def get_inputs(batch_size=128, input_size=32768, **sizes):
    return [torch.rand(batch_size, input_size)]


def get_init_inputs(input_size=32768, hidden_size=32768, **sizes):
    return [input_size, hidden_size]


def get_flops(batch_size=128, input_size=32768, hidden_size=32768):
    # matmul; per output of the layer: bias, sigmoid (4), sum
    return 2 * batch_size * input_size * hidden_size + 6 * batch_size * hidden_size
