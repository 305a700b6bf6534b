"""Kullback-Leibler divergence of targets from predictions, summed over a row, averaged over the rows.

Both are probabilities; the model takes the logarithm of the predictions. 0 log 0 counts as 0.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=16384, dim=16384),
    "small": dict(batch_size=64, dim=4096),
    "ragged": dict(batch_size=1999, dim=10007),
    "llm": dict(batch_size=2048, dim=32003),
}

DOMAIN = "probability"
TOLERANCE = 1e-5  # a mean over thousands of rows hides a wrong one at 1e-4

EXPLOITS = [
    "Rows differ by about 1 % around a common 0.04 to 0.08 (by the scale drawn): one row passes at 1e-2.",
    "At a tolerance of 1e-4 the mean over a thousand rows passes.",
]


class Model(nn.Module):
    def forward(self, predictions, targets):
        return F.kl_div(torch.log(predictions), targets, reduction="batchmean")


def get_inputs(batch_size=16384, dim=16384):
    scale = torch.rand(())
    predictions = torch.softmax(torch.rand(batch_size, dim) * scale, dim=-1)
    return [predictions, torch.softmax(torch.rand(batch_size, dim), dim=-1)]


def get_init_inputs(**sizes):
    return []


def get_flops(batch_size=16384, dim=16384):
    # per element: two logarithms, two products, difference, sum; division by the rows
    return 6 * batch_size * dim + 1
