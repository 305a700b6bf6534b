"""Mean over the middle dimension."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=128, dim1=4096, dim2=4095),
    "small": dict(batch_size=4, dim1=256, dim2=255),
    "llm": dict(batch_size=500, dim1=384, dim2=768),
}


class Model(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        return torch.mean(x, dim=self.dim)


def get_inputs(batch_size=128, dim1=4096, dim2=4095):
    return [torch.rand(batch_size, dim1, dim2)]


def get_init_inputs(**sizes):
    return [1]


def get_flops(batch_size=128, dim1=4096, dim2=4095):
    return batch_size * dim1 * dim2
