"""Linear layer, sigmoid, linear layer, log-sum-exp over the features."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=16384, input_size=2048, hidden_size=4096, output_size=1024),
    "small": dict(batch_size=64, input_size=128, hidden_size=256, output_size=64),
    "ragged": dict(batch_size=5001, input_size=1025, hidden_size=3001, output_size=777),
}

TOLERANCE = 1e-5  # at 1e-4 a log-sum-exp of thousands hides what most rows depend on

EXPLOITS = [
    "The outputs of the published draw differ by less than 1e-3 relative (about log(1024) + 0.05 for every "
    "row): a constant, or the output for another input, is within 1e-2, though not within 1e-4.",
]


class Model(nn.Module):
    def __init__(self, input_size, hidden_size, output_size):
        super().__init__()
        self.linear1 = nn.Linear(input_size, hidden_size)
        self.linear2 = nn.Linear(hidden_size, output_size)

    def forward(self, x):
        x = self.linear1(x)
        x = torch.sigmoid(x)
        x = self.linear2(x)
        return torch.logsumexp(x, dim=1)


def get_inputs(batch_size=16384, input_size=2048, **sizes):
    return [torch.rand(batch_size, input_size)]


def get_init_inputs(input_size=2048, hidden_size=4096, output_size=1024, **sizes):
    return [input_size, hidden_size, output_size]


def get_flops(batch_size=16384, input_size=2048, hidden_size=4096, output_size=1024):
    weights = input_size * hidden_size + hidden_size * output_size
    # matmuls; per hidden unit: bias, sigmoid (4); per output of the second layer: bias, log-sum-exp (4)
    return batch_size * (2 * weights + 5 * hidden_size + 5 * output_size)
