# kb: problem=1/19 sample=100
"""Ends as build_error: the source does not compile."""

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x)
        return x.clamp(min=0)
