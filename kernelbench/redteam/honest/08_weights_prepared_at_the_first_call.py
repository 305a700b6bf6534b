# kb: problem=2/76 sample=81
"""Transposes its own weights once, in its first call."""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, in_features, out_features, bias_shape):
        super().__init__()
        self.gemm = torch.nn.Linear(in_features, out_features, bias=False)
        self.bias = torch.nn.Parameter(torch.randn(bias_shape))
        self.weight = None

    def forward(self, x):
        if self.weight is None:
            self.weight = self.gemm.weight.t().contiguous()
        return torch.addmm(self.bias, x, self.weight).relu_()
