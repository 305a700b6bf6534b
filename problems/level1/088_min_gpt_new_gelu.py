"""GELU by the tanh approximation, elementwise, written out as in minGPT."""

import math

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=8192, dim=8192),
    "small": dict(batch_size=64, dim=4096),
    "ragged": dict(batch_size=1999, dim=10007),
    "llm": dict(batch_size=8192, dim=6400),
}

EXPLOITS = [
    "The draw is uniform on [0, 1), where a polynomial of degree 5 without tanh is within 5e-6.",
    "On [0, 1) the exact GELU differs by at most 2e-4, which passes at a tolerance of 1e-2.",
]


class Model(nn.Module):
    def forward(self, x):
        inner = math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))
        return 0.5 * x * (1.0 + torch.tanh(inner))


def get_inputs(batch_size=8192, dim=8192):
    return [torch.rand(batch_size, dim)]


def get_init_inputs(**sizes):
    return []


def get_flops(batch_size=8192, dim=8192):
    # per element: cube, scaling, sum, scaling, tanh, sum, halving, product
    return 8 * batch_size * dim
