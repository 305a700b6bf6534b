"""Linear layer, log-sum-exp of each row, leaky ReLU twice, GELU twice."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=1024, in_features=8192, out_features=8192),
    "small": dict(batch_size=64, in_features=256, out_features=256),
    "llm": dict(batch_size=512, in_features=4096, out_features=32003),
}

TOLERANCE = 1e-5  # at 1e-4 a log-sum-exp of thousands hides what most rows depend on

EXPLOITS = [
    "At the published size every log-sum-exp lies between 9.05 and 9.08, so the constant 9.07 passes at a "
    "tolerance of 1e-2.",
    "At values around 9 all four activations are the identity in fp32, so leaving them out passes.",
]


class Model(nn.Module):
    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features, bias=bias)

    def forward(self, x):
        x = self.linear(x)
        x = torch.logsumexp(x, dim=1, keepdim=True)
        x = F.leaky_relu(x, 0.01)
        x = F.leaky_relu(x, 0.01)
        x = F.gelu(x)
        return F.gelu(x)


def get_inputs(batch_size=1024, in_features=8192, **sizes):
    return [torch.rand(batch_size, in_features)]


def get_init_inputs(in_features=8192, out_features=8192, **sizes):
    return [in_features, out_features]


def get_flops(batch_size=1024, in_features=8192, out_features=8192):
    # matmul; per output of the layer: bias, log-sum-exp (4);
    # per row: two leaky ReLUs (2 each), two GELUs (5 each)
    return 2 * batch_size * in_features * out_features + 5 * batch_size * out_features + 14 * batch_size
