"""Linear layer, scaling, doubling, clamp, log-sum-exp over the features, product with its own Mish."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=1024, input_size=8192, hidden_size=8192, scale_factor=2.0),
    "small": dict(batch_size=64, input_size=256, hidden_size=256, scale_factor=2.0),
    "ragged": dict(batch_size=1001, input_size=3001, hidden_size=5003, scale_factor=8.0),
}

TOLERANCE = 1e-5  # at 1e-4 a log-sum-exp of thousands hides what most rows depend on

EXPLOITS = [
    "The clamped values of the published draw stay within about 7 of 0 (standard deviation 1.3): leaving "
    "the clamp out passes.",
    "The log-sum-exp v of the published draw is about 9.9, where Mish is the identity to rounding: "
    "v * v passes.",
]


class Model(nn.Module):
    def __init__(self, input_size, hidden_size, scale_factor, clamp_min, clamp_max):
        super().__init__()
        self.matmul = nn.Linear(input_size, hidden_size)
        self.scale_factor = scale_factor
        self.clamp_min = clamp_min
        self.clamp_max = clamp_max

    def forward(self, x):
        x = self.matmul(x)
        x = x * self.scale_factor
        x = x + x
        x = torch.clamp(x, self.clamp_min, self.clamp_max)
        x = torch.logsumexp(x, dim=1, keepdim=True)
        return x * F.mish(x)


def get_inputs(batch_size=1024, input_size=8192, **sizes):
    return [torch.rand(batch_size, input_size)]


def get_init_inputs(input_size=8192, hidden_size=8192, scale_factor=2.0, **sizes):
    return [input_size, hidden_size, scale_factor, -10.0, 10.0]


def get_flops(batch_size=1024, input_size=8192, hidden_size=8192, **sizes):
    # matmul; per output of the layer: bias, scaling, doubling, clamp (2), log-sum-exp (4);
    # per row: Mish (5), product
    matmul = 2 * batch_size * input_size * hidden_size
    return matmul + 9 * batch_size * hidden_size + 6 * batch_size
