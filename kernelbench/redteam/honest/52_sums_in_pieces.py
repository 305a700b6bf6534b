# kb: problem=1/37 sample=522
"""Takes the norm as the root of the sums of squares of many pieces."""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        pieces = x.reshape(-1, x.shape[-1])
        return x / (pieces * pieces).sum(dim=1).sum().sqrt()
