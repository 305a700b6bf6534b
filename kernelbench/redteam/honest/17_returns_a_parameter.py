# kb: problem=1/1 sample=172
"""Returns a Parameter, which is a subclass and holds its values."""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        return torch.nn.Parameter(a @ b)
