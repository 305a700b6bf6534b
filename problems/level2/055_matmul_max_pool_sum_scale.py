"""Linear layer, maximum of neighbouring features, sum of each row, scaling by a constant."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=128, in_features=32768, out_features=32768),
    "small": dict(batch_size=64, in_features=256, out_features=256),
    "ragged": dict(batch_size=1001, in_features=2999, out_features=4099),
}


class Model(nn.Module):
    def __init__(self, in_features, out_features, kernel_size, scale_factor):
        super().__init__()
        self.matmul = nn.Linear(in_features, out_features)
        self.kernel_size = kernel_size
        self.scale_factor = scale_factor

    def forward(self, x):
        x = self.matmul(x)
        x = F.max_pool1d(x.unsqueeze(1), self.kernel_size).squeeze(1)
        x = torch.sum(x, dim=1)
        return x * self.scale_factor


def get_inputs(batch_size=128, in_features=32768, **sizes):
    return [torch.rand(batch_size, in_features)]


def get_init_inputs(in_features=32768, out_features=32768, **sizes):
    return [in_features, out_features, 2, 0.5]


def get_flops(batch_size=128, in_features=32768, out_features=32768):
    pooled = batch_size * (out_features // 2)
    # matmul; per output of the layer: bias; per pooled value: window of 2, sum; per row: scaling
    matmul = 2 * batch_size * in_features * out_features
    return matmul + batch_size * out_features + 3 * pooled + batch_size
