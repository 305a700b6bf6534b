"""Linear layer, dropout (active, p = 0.2), softmax over the features."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=128, in_features=16384, out_features=16384),
    "small": dict(batch_size=64, in_features=256, out_features=256),
    "llm": dict(batch_size=512, in_features=4096, out_features=32003),
}

EXPLOITS = [
    "At the published size outputs are about 6e-5 and at most 4e-4, so zeros, or a softmax without the "
    "dropout, pass at a tolerance of 1e-2.",
]

RANDOM = (
    "The mask of the dropout is drawn from torch's default generator: draw it as "
    "torch.nn.functional.dropout does, once a call, on a tensor of the same shape and type."
)


class Model(nn.Module):
    def __init__(self, in_features, out_features, dropout_p):
        super().__init__()
        self.matmul = nn.Linear(in_features, out_features)
        self.dropout = nn.Dropout(dropout_p)

    def forward(self, x):
        x = self.matmul(x)
        x = self.dropout(x)
        return torch.softmax(x, dim=1)


def get_inputs(batch_size=128, in_features=16384, **sizes):
    return [torch.rand(batch_size, in_features)]


def get_init_inputs(in_features=16384, out_features=16384, **sizes):
    return [in_features, out_features, 0.2]


def get_flops(batch_size=128, in_features=16384, out_features=16384):
    # matmul; per output: bias, dropout (mask and scaling), softmax (5)
    return 2 * batch_size * in_features * out_features + 8 * batch_size * out_features
