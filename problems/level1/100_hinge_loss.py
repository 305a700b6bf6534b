"""Hinge loss max(0, 1 - prediction * target), averaged; a target of +-1 for each column."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=32768, dim=32768),
    "small": dict(batch_size=32, dim=512),
    "ragged": dict(batch_size=1999, dim=10007),
}

DOMAIN = {"predictions": "real", "targets": "sign"}

EXPLOITS = [
    "Predictions are in [0, 1), so the clamp never acts: 1 - mean(predictions * targets) passes.",
    "The loss is 1 to about 0.003 for every seed: the constant 1 passes at a tolerance of 1e-2.",
    "Rows are drawn alike, so the mean over a tenth of them is within 1e-4 of the loss.",
]

TOLERANCE = 1e-5  # a mean over thousands of elements hides a wrong one at 1e-4


class Model(nn.Module):
    def forward(self, predictions, targets):
        return torch.mean(torch.clamp(1 - predictions * targets, min=0))


def get_inputs(batch_size=32768, dim=32768):
    return [torch.rand(batch_size, dim), torch.randint(0, 2, (dim,)).float() * 2 - 1]


def get_init_inputs(**sizes):
    return []


def get_flops(batch_size=32768, dim=32768):
    # per element: product, difference, comparison, sum
    return 4 * batch_size * dim
