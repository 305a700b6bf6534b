"""Batched matrix product: one product of its own for each sample."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=128, m=512, k=1024, n=2048),
    "small": dict(batch_size=4, m=64, k=128, n=192),
    "ragged": dict(batch_size=33, m=499, k=130, n=1001),
}


class Model(nn.Module):
    def forward(self, A, B):
        return torch.bmm(A, B)


def get_inputs(batch_size=128, m=512, k=1024, n=2048):
    return [torch.rand(batch_size, m, k), torch.rand(batch_size, k, n)]


def get_init_inputs(**sizes):
    return []


def get_flops(batch_size=128, m=512, k=1024, n=2048):
    return 2 * batch_size * m * k * n
