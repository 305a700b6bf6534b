# kb: problem=1/40 sample=392
"""Has scale and shift under names and shapes of its own."""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(1, *shape))
        self.shift = torch.nn.Parameter(torch.zeros(1, *shape))

    def forward(self, x):
        return torch.nn.functional.layer_norm(x, x.shape[1:]) * self.scale + self.shift
