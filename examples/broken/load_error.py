# kb: problem=1/19 sample=101
"""Ends as load_error: there is no ModelNew."""

import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return x.clamp(min=0)
