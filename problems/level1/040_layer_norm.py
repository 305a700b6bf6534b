"""Layer norm over the last three dimensions, with elementwise weight and bias."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=16, features=64, height=256, width=256),
    "small": dict(batch_size=4, features=16, height=32, width=32),
    "ragged": dict(batch_size=33, features=7, height=129, width=97),
}

EXPLOITS = [
    "Weight and bias are initialised to ones and zeros, so leaving them out passes.",
]


class Model(nn.Module):
    def __init__(self, normalized_shape):
        super().__init__()
        self.ln = nn.LayerNorm(normalized_shape=normalized_shape)

    def forward(self, x):
        return self.ln(x)


def get_inputs(batch_size=16, features=64, height=256, width=256):
    return [torch.rand(batch_size, features, height, width)]


def get_init_inputs(features=64, height=256, width=256, **sizes):
    return [(features, height, width)]


def get_flops(batch_size=16, features=64, height=256, width=256):
    # per element: sum, subtraction, square, sum, scaling, weight, bias
    return 7 * batch_size * features * height * width
