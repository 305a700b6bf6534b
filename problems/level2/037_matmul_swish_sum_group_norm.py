"""Linear layer, SiLU, addition of a bias of its own, group norm over the features of each row."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=32768, in_features=1024, out_features=4096, num_groups=64),
    "small": dict(batch_size=64, in_features=128, out_features=256, num_groups=8),
    "ragged": dict(batch_size=5001, in_features=1025, out_features=3003, num_groups=21),
}

EXPLOITS = [
    "Group norm weight and bias are initialised to ones and zeros, so leaving them out passes.",
]


class Model(nn.Module):
    def __init__(self, in_features, out_features, num_groups, bias_shape):
        super().__init__()
        self.matmul = nn.Linear(in_features, out_features)
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.group_norm = nn.GroupNorm(num_groups, out_features)

    def forward(self, x):
        x = self.matmul(x)
        x = torch.sigmoid(x) * x
        x = x + self.bias
        return self.group_norm(x)


def get_inputs(batch_size=32768, in_features=1024, **sizes):
    return [torch.rand(batch_size, in_features)]


def get_init_inputs(in_features=1024, out_features=4096, num_groups=64, **sizes):
    return [in_features, out_features, num_groups, (out_features,)]


def get_flops(batch_size=32768, in_features=1024, out_features=4096, **sizes):
    # matmul; per output: bias, SiLU (5), second bias, group norm (7)
    return 2 * batch_size * in_features * out_features + 14 * batch_size * out_features
