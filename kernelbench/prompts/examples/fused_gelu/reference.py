import math

import torch
import torch.nn as nn


class Model(nn.Module):
    """GELU by the tanh approximation, after a bias."""

    def __init__(self, features):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(features))

    def forward(self, x):
        x = x + self.bias
        return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)))


def get_inputs():
    return [torch.randn(2048, 1024)]


def get_init_inputs():
    return [1024]
