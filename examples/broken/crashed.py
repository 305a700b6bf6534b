# kb: problem=1/19 sample=105
"""Ends as crashed: reads address 0."""

import ctypes

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        ctypes.string_at(0)
        return x.clamp(min=0)
