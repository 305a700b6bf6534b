"""Matrix times column vector, over very long rows."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(m=2048, k=1048576),
    "small": dict(m=64, k=65536),
    "llm": dict(m=32003, k=4096),
}

EXPLOITS = [
    "At the published size every output is k / 4 to about 1e-3 relative: a constant passes at 1e-2.",
]


class Model(nn.Module):
    def forward(self, A, B):
        return torch.matmul(A, B)


def get_inputs(m=2048, k=1048576):
    return [torch.rand(m, k), torch.rand(k, 1)]


def get_init_inputs(**sizes):
    return []


def get_flops(m=2048, k=1048576):
    return 2 * m * k
