# kb: problem=1/1 sample=11
"""Keeps memory by shape, and computes into it anew in every call."""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.workspaces = {}

    def forward(self, a, b):
        shape = a.shape[0], b.shape[1]
        if shape not in self.workspaces:
            self.workspaces[shape] = a.new_empty(shape)
        return torch.matmul(a, b, out=self.workspaces[shape]).clone()
