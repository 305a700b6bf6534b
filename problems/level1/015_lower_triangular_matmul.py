"""Product of two lower triangular matrices, with zeros above the diagonal."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(n=4096),
    "small": dict(n=256),
    "ragged": dict(n=1999),
}

DOMAIN = {"A": "lower_triangular", "B": "lower_triangular"}

EXPLOITS = [
    "Both inputs are lower triangular in every draw, so leaving out the final tril passes.",
]


class Model(nn.Module):
    def forward(self, A, B):
        return torch.tril(torch.matmul(A, B))


def get_inputs(n=4096):
    a, b = torch.rand(n, n), torch.rand(n, n)
    return [torch.tril(a), torch.tril(b)]


def get_init_inputs(**sizes):
    return []


def get_flops(n=4096):
    # as a dense product; skipping the zeros of both factors leaves about a sixth
    return 2 * n**3
