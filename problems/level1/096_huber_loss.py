"""Huber loss (smooth L1 with threshold 1) of two matrices, averaged over all elements."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=32768, dim=32768),
    "small": dict(batch_size=64, dim=4096),
    "ragged": dict(batch_size=1999, dim=10007),
}

EXPLOITS = [
    "Differences stay below 1, so the linear branch is never taken: half the mean squared difference passes.",
    "All elements are drawn alike, so the mean over a tenth of the rows is within 1e-4 of the loss.",
]


class Model(nn.Module):
    def forward(self, predictions, targets):
        return F.smooth_l1_loss(predictions, targets)


def get_inputs(batch_size=32768, dim=32768):
    scale = torch.rand(())
    return [torch.rand(batch_size, dim) * scale, torch.rand(batch_size, dim)]


def get_init_inputs(**sizes):
    return []


def get_flops(batch_size=32768, dim=32768):
    # per element: difference, absolute value, comparison, square and halving, sum
    return 6 * batch_size * dim
