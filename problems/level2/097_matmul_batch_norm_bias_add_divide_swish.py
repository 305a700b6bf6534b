"""Linear layer, batch norm, addition of a scalar parameter, division by a constant, x * sigmoid(x)."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=1024, in_features=8192, out_features=8192),
    "small": dict(batch_size=64, in_features=256, out_features=256),
    "ragged": dict(batch_size=1001, in_features=2999, out_features=4099),
}

EXPLOITS = [
    "Weight and bias of the norm are initialised to ones and zeros, so leaving them out passes.",
    "The divisor is 1, so leaving the division out passes.",
]


class Model(nn.Module):
    def __init__(
        self, in_features, out_features, bn_eps=1e-5, bn_momentum=0.1, bias_shape=(1,), divide_value=1.0
    ):
        super().__init__()
        self.matmul = nn.Linear(in_features, out_features)
        self.bn = nn.BatchNorm1d(out_features, eps=bn_eps, momentum=bn_momentum)
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.divide_value = divide_value

    def forward(self, x):
        x = self.matmul(x)
        x = self.bn(x)
        x = x + self.bias
        x = x / self.divide_value
        return x * torch.sigmoid(x)


def get_inputs(batch_size=1024, in_features=8192, **sizes):
    return [torch.rand(batch_size, in_features)]


def get_init_inputs(in_features=8192, out_features=8192, **sizes):
    return [in_features, out_features, 1e-5, 0.1, (1,), 1.0]


def get_flops(batch_size=1024, in_features=8192, out_features=8192):
    # matmul; per output: bias, batch norm (7), addition, division, sigmoid (4), product
    return 2 * batch_size * in_features * out_features + 15 * batch_size * out_features
