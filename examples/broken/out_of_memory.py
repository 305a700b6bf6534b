# kb: problem=1/19 sample=104
"""Ends as out_of_memory: asks for a pebibyte."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        scratch = torch.empty(1 << 50, dtype=torch.int8, device=x.device)
        return x.clamp(min=0) + scratch[0]
