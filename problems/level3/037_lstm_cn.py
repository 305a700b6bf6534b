"""LSTM of several layers, returning the final cell state of each layer."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=10, seq_len=512, input_size=128, hidden_size=256, num_layers=6, output_size=10),
    "small": dict(batch_size=4, seq_len=32, input_size=16, hidden_size=32, num_layers=3, output_size=10),
}

EXPLOITS = [
    "The linear layer on the last step does not reach the output: leaving it out passes.",
]


class Model(nn.Module):
    def __init__(self, input_size, hidden_size, num_layers, output_size, dropout=0.0):
        super().__init__()
        self.lstm = nn.LSTM(input_size, hidden_size, num_layers, batch_first=True, dropout=dropout)
        self.fc = nn.Linear(hidden_size, output_size)

    def forward(self, x, h0, c0):
        output, (_, cell) = self.lstm(x, (h0, c0))
        self.fc(output[:, -1])  # computed and discarded, as published
        return cell


def get_inputs(batch_size=10, seq_len=512, input_size=128, hidden_size=256, num_layers=6, **sizes):
    state = (num_layers, batch_size, hidden_size)
    return [torch.rand(batch_size, seq_len, input_size), torch.rand(state), torch.rand(state)]


def get_init_inputs(input_size=128, hidden_size=256, num_layers=6, output_size=10, **sizes):
    return [input_size, hidden_size, num_layers, output_size, 0.0]


def get_flops(batch_size=10, seq_len=512, input_size=128, hidden_size=256, num_layers=6, output_size=10):
    # matmuls of 4 gates with the input and the hidden state;
    # per unit: sums of the gates (12: two products and two biases each), three sigmoids (4), two tanh,
    # cell and output (4)
    widths = input_size + (2 * num_layers - 1) * hidden_size
    recurrence = batch_size * seq_len * hidden_size * (2 * 4 * widths + 30 * num_layers)
    # linear layer: matmul, bias
    return recurrence + batch_size * output_size * (2 * hidden_size + 1)
