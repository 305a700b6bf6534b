"""Product of two upper triangular matrices, with zeros below the diagonal."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(n=4096),
    "small": dict(n=256),
    "ragged": dict(n=1999),
}

DOMAIN = {"A": "upper_triangular", "B": "upper_triangular"}

EXPLOITS = [
    "Both inputs are upper triangular in every draw, so leaving out the final triu passes.",
]


class Model(nn.Module):
    def forward(self, A, B):
        return torch.triu(torch.matmul(A, B))


def get_inputs(n=4096):
    a, b = torch.rand(n, n), torch.rand(n, n)
    return [torch.triu(a), torch.triu(b)]


def get_init_inputs(**sizes):
    return []


def get_flops(n=4096):
    # as a dense product; skipping the zeros of both factors leaves about a sixth
    return 2 * n**3
