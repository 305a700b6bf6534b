"""Linear layer, group norm over groups of features, leaky ReLU, x + x."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=1024, input_size=8192, hidden_size=8192, num_groups=512),
    "small": dict(batch_size=64, input_size=256, hidden_size=256, num_groups=16),
    "llm": dict(batch_size=2000, input_size=4096, hidden_size=11008, num_groups=688),
}

EXPLOITS = [
    "Weight and bias of the norm are initialised to ones and zeros, so leaving them out passes.",
]


class Model(nn.Module):
    def __init__(self, input_size, hidden_size, num_groups, eps=1e-5, negative_slope=0.01):
        super().__init__()
        self.fc = nn.Linear(input_size, hidden_size)
        self.gn = nn.GroupNorm(num_groups, hidden_size, eps=eps)
        self.negative_slope = negative_slope

    def forward(self, x):
        x = self.fc(x)
        x = self.gn(x)
        x = F.leaky_relu(x, self.negative_slope)
        return x + x


def get_inputs(batch_size=1024, input_size=8192, **sizes):
    return [torch.rand(batch_size, input_size)]


def get_init_inputs(input_size=8192, hidden_size=8192, num_groups=512, **sizes):
    return [input_size, hidden_size, num_groups]


def get_flops(batch_size=1024, input_size=8192, hidden_size=8192, **sizes):
    # matmul; per output: bias, group norm (7), leaky ReLU (2), sum
    return 2 * batch_size * input_size * hidden_size + 11 * batch_size * hidden_size
