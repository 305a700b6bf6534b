# kb: problem=1/19 sample=121
"""Returns a view that is not contiguous, of memory of its own."""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x.t().contiguous().relu_().t()
