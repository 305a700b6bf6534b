"""Batch of matrices times one matrix that all of them share."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=16, m=1024, k=2048, n=768),
    "small": dict(batch_size=4, m=64, k=128, n=96),
    "llm": dict(batch_size=7, m=1000, k=4096, n=11008),
}


class Model(nn.Module):
    def forward(self, A, B):
        return torch.matmul(A, B)


def get_inputs(batch_size=16, m=1024, k=2048, n=768):
    return [torch.rand(batch_size, m, k), torch.rand(k, n)]


def get_init_inputs(**sizes):
    return []


def get_flops(batch_size=16, m=1024, k=2048, n=768):
    return 2 * batch_size * m * k * n
