# kb: problem=1/19 sample=183 device=cuda
"""Waits for its result, as many do who time their own kernels."""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        result = torch.relu(x)
        torch.cuda.synchronize()
        return result
