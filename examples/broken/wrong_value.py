# kb: problem=1/19 sample=108
"""Ends as wrong_value: the last column is never computed."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.zeros_like(x)
        y[:, :-1] = x[:, :-1].clamp(min=0)
        return y
