"""Mean squared difference of two matrices, over all elements."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=32768, dim=32768),
    "small": dict(batch_size=32, dim=512),
    "ragged": dict(batch_size=1999, dim=10007),
}

EXPLOITS = [
    "All elements are drawn alike, so the mean over a tenth of the rows is within 1e-4 of the loss.",
]

TOLERANCE = 1e-5  # a mean over thousands of elements hides a wrong one at 1e-4


class Model(nn.Module):
    def forward(self, predictions, targets):
        return torch.mean((predictions - targets) ** 2)


def get_inputs(batch_size=32768, dim=32768):
    scale = torch.rand(())
    return [torch.rand(batch_size, dim) * scale, torch.rand(batch_size, dim)]


def get_init_inputs(**sizes):
    return []


def get_flops(batch_size=32768, dim=32768):
    # per element: difference, square, sum
    return 3 * batch_size * dim
