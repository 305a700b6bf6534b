"""Diagonal matrix times matrix, the diagonal given as a vector: row i of B scaled by A[i]."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(m=4096, n=4096),
    "small": dict(m=256, n=512),
    "ragged": dict(m=4099, n=10007),
}


class Model(nn.Module):
    def forward(self, A, B):
        return A.unsqueeze(1) * B


def get_inputs(m=4096, n=4096):
    return [torch.rand(m), torch.rand(m, n)]


def get_init_inputs(**sizes):
    return []


def get_flops(m=4096, n=4096):
    return m * n
