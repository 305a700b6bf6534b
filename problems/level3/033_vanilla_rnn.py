"""One step of a vanilla RNN: hidden = tanh(linear(x, hidden)), output = linear(hidden)."""

import torch
import torch.nn as nn

BATCH_SIZE = (
    256  # fixed: the constructor, which is not told the batch size, draws a hidden state of this many rows
)

WORKLOADS = {
    "full": dict(input_size=16384, hidden_size=16384, output_size=8192),
    "small": dict(input_size=256, hidden_size=256, output_size=128),
}


class Model(nn.Module):
    def __init__(self, input_size, hidden_size, output_size):
        super().__init__()
        self.hidden = torch.randn(BATCH_SIZE, hidden_size)
        self.i2h = nn.Linear(input_size + hidden_size, hidden_size)
        self.h2o = nn.Linear(hidden_size, output_size)

    def forward(self, x, initial_hidden=None):
        # without initial_hidden a call goes on where the last one ended
        hidden = self.hidden.to(x) if initial_hidden is None else initial_hidden
        self.hidden = torch.tanh(self.i2h(torch.cat([x, hidden], dim=1)))
        return self.h2o(self.hidden)


def get_inputs(input_size=16384, hidden_size=16384, **sizes):
    return [torch.rand(BATCH_SIZE, input_size), torch.rand(BATCH_SIZE, hidden_size)]


def get_init_inputs(input_size=16384, hidden_size=16384, output_size=8192):
    return [input_size, hidden_size, output_size]


def get_flops(input_size=16384, hidden_size=16384, output_size=8192):
    # matmuls; per hidden unit: bias, tanh; per output: bias
    weights = (input_size + hidden_size) * hidden_size + hidden_size * output_size
    return BATCH_SIZE * (2 * weights + 2 * hidden_size + output_size)
