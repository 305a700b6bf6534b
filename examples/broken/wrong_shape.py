# kb: problem=1/19 sample=106
"""Ends as wrong_shape: the output is flat."""

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.clamp(min=0).flatten()
