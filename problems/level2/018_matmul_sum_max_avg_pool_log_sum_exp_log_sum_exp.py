"""Linear layer, sum over the features, then maximum, mean and log-sum-exp twice over what is left.

What is left is one number a row, which the four last reductions do not change.
"""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=1024, in_features=8192, out_features=8192),
    "small": dict(batch_size=64, in_features=256, out_features=256),
    "ragged": dict(batch_size=1001, in_features=3001, out_features=5003),
}


class Model(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)

    def forward(self, x):
        x = self.linear(x)
        x = torch.sum(x, dim=1, keepdim=True)
        x = torch.max(x, dim=1, keepdim=True)[0]
        x = torch.mean(x, dim=1, keepdim=True)
        x = torch.logsumexp(x, dim=1, keepdim=True)
        return torch.logsumexp(x, dim=1, keepdim=True)


def get_inputs(batch_size=1024, in_features=8192, **sizes):
    return [torch.rand(batch_size, in_features)]


def get_init_inputs(in_features=8192, out_features=8192, **sizes):
    return [in_features, out_features]


def get_flops(batch_size=1024, in_features=8192, out_features=8192):
    # matmul; per output of the layer: bias, sum; per row: maximum, mean, log-sum-exp (4) twice
    return 2 * batch_size * in_features * out_features + 2 * batch_size * out_features + 10 * batch_size
