"""Bidirectional LSTM of several layers, linear layer on the last step."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=10, seq_len=512, input_size=128, hidden_size=256, num_layers=6, output_size=10),
    "small": dict(batch_size=4, seq_len=32, input_size=16, hidden_size=32, num_layers=3, output_size=10),
}


class Model(nn.Module):
    def __init__(self, input_size, hidden_size, num_layers, output_size, dropout=0.0):
        super().__init__()
        self.lstm = nn.LSTM(
            input_size, hidden_size, num_layers, batch_first=True, dropout=dropout, bidirectional=True
        )
        self.fc = nn.Linear(2 * hidden_size, output_size)

    def forward(self, x, h0, c0):
        output, _ = self.lstm(x, (h0, c0))
        return self.fc(output[:, -1])


def get_inputs(batch_size=10, seq_len=512, input_size=128, hidden_size=256, num_layers=6, **sizes):
    state = (2 * num_layers, batch_size, hidden_size)
    return [torch.rand(batch_size, seq_len, input_size), torch.rand(state), torch.rand(state)]


def get_init_inputs(input_size=128, hidden_size=256, num_layers=6, output_size=10, **sizes):
    return [input_size, hidden_size, num_layers, output_size, 0.0]


def get_flops(batch_size=10, seq_len=512, input_size=128, hidden_size=256, num_layers=6, output_size=10):
    # both directions: matmuls of 4 gates with the input (above the first layer both directions of the
    # layer below) and the hidden state;
    # per unit: sums of the gates (12: two products and two biases each), three sigmoids (4), two tanh,
    # cell and output (4)
    widths = input_size + (3 * num_layers - 2) * hidden_size
    recurrence = 2 * batch_size * seq_len * hidden_size * (2 * 4 * widths + 30 * num_layers)
    # linear layer: matmul, bias
    return recurrence + batch_size * output_size * (2 * 2 * hidden_size + 1)
