"""Matrix times scalar: C = A * s."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(m=65536, n=16384),
    "small": dict(m=256, n=512),
    "ragged": dict(m=4099, n=10007),
}

EXPLOITS = [
    "The scalar is 3.14 in every draw, so a kernel that ignores s and has it written in passes.",
]


class Model(nn.Module):
    def forward(self, A, s):
        return A * s


def get_inputs(m=65536, n=16384):
    return [torch.rand(m, n), 3.14]


def get_init_inputs(**sizes):
    return []


def get_flops(m=65536, n=16384):
    return m * n
