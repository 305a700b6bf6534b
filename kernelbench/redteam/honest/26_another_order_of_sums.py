# kb: problem=1/1 sample=261
"""Sums in another order, in the same precision."""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        half = a.shape[1] // 2
        return a[:, half:] @ b[half:] + a[:, :half] @ b[:half]
