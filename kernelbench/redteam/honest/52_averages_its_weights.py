# kb: problem=2/98 sample=525
"""Averages the weights of the units that are averaged, and multiplies by all of them."""

import torch
import torch.nn.functional as F


class ModelNew(torch.nn.Module):
    def __init__(self, in_features, out_features, pool_kernel_size, scale_factor):
        super().__init__()
        self.matmul = torch.nn.Linear(in_features, out_features)
        self.pooled, self.scale = pool_kernel_size, scale_factor

    def forward(self, x):
        used = len(self.matmul.weight) // self.pooled * self.pooled
        weight, bias = self.matmul.weight[:used], self.matmul.bias[:used]
        weight = weight.view(-1, self.pooled, weight.shape[1]).mean(1)
        return (F.gelu(F.linear(x, weight, bias.view(-1, self.pooled).mean(1))) * self.scale).amax(1)
