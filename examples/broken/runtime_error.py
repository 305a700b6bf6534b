# kb: problem=1/19 sample=102
"""Ends as runtime_error: the call raises."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.maximum(x, torch.zeros(3, device=x.device))
