# kb: problem=1/19 sample=111
"""Computes in place in a copy."""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x.clone().clamp_(min=0)
