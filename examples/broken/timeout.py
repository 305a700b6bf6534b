# kb: problem=1/19 sample=103
"""Ends as timeout: the call never returns."""

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        while True:
            pass
