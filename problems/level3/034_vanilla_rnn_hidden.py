"""Vanilla RNN over a sequence: hidden = tanh(linear(x, hidden)), an output by a linear layer at each step."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=8, seq_len=256, input_size=1024, hidden_size=256, output_size=128),
    "small": dict(batch_size=4, seq_len=16, input_size=64, hidden_size=32, output_size=16),
}

FEEDBACK = ("input_size", "hidden_size")  # i2h is given its own outputs, after an input


class Model(nn.Module):
    def __init__(self, input_size, hidden_size, output_size):
        super().__init__()
        self.i2h = nn.Linear(input_size + hidden_size, hidden_size)
        self.h2o = nn.Linear(hidden_size, output_size)

    def forward(self, x, h0):
        hidden, outputs = h0, []
        for step in x:
            hidden = torch.tanh(self.i2h(torch.cat([step, hidden], dim=1)))
            outputs.append(self.h2o(hidden))
        return torch.stack(outputs)


def get_inputs(batch_size=8, seq_len=256, input_size=1024, hidden_size=256, **sizes):
    return [torch.rand(seq_len, batch_size, input_size), torch.rand(batch_size, hidden_size)]


def get_init_inputs(input_size=1024, hidden_size=256, output_size=128, **sizes):
    return [input_size, hidden_size, output_size]


def get_flops(batch_size=8, seq_len=256, input_size=1024, hidden_size=256, output_size=128):
    # matmuls; per hidden unit: bias, tanh; per output: bias
    weights = (input_size + hidden_size) * hidden_size + hidden_size * output_size
    return seq_len * batch_size * (2 * weights + 2 * hidden_size + output_size)
