"""Triplet margin loss: mean over rows of max(0, |a - p| - |a - n| + margin), Euclidean distances.

A distance adds 1e-6 to each coordinate's difference before the norm.
"""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=32768, dim=8192),
    "small": dict(batch_size=64, dim=4096),
    "ragged": dict(batch_size=1999, dim=1021),
    "embedding": dict(batch_size=8192, dim=512),
}

EXPLOITS = [
    "Differences of the distances average out: the loss is 1 to about 0.002, and 1 passes at 1e-2.",
]

TOLERANCE = 1e-5  # a mean over thousands of elements hides a wrong one at 1e-4


class Model(nn.Module):
    def __init__(self, margin=1.0):
        super().__init__()
        self.loss_fn = nn.TripletMarginLoss(margin=margin)

    def forward(self, anchor, positive, negative):
        return self.loss_fn(anchor, positive, negative)


def get_inputs(batch_size=32768, dim=8192):
    scale = torch.rand(())
    anchor = torch.rand(batch_size, dim) * scale
    return [anchor, torch.rand(batch_size, dim), torch.rand(batch_size, dim)]


def get_init_inputs(**sizes):
    return [1.0]


def get_flops(batch_size=32768, dim=8192):
    # per element of two distances: difference, epsilon, square, sum;
    # per row: two roots, difference, margin, comparison, sum
    return 8 * batch_size * dim + 6 * batch_size
