# kb: problem=1/19 sample=109
"""Ends as nonfinite: one element is NaN."""

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        y = x.clamp(min=0)
        y[0, 0] = float("nan")
        return y
