"""LSTM of several layers, linear layer on the last step; the initial state is drawn in forward."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=10, seq_len=512, input_size=128, hidden_size=256, num_layers=6, output_size=10),
    "small": dict(batch_size=4, seq_len=32, input_size=16, hidden_size=32, num_layers=3, output_size=10),
}

FORGETS = True  # the initial state, which forward draws: with a longer memory outputs would depend on it

EXPLOITS = [
    "The initial state is forgotten over the published 512 steps: zeros in place of the random draw pass.",
    "With inputs uniform on [0, 1), outputs for different inputs differ by about 1e-4: the result for another"
    " input passes at a tolerance of 1e-2, and mostly at 1e-4.",
]


class Model(nn.Module):
    def __init__(self, input_size, hidden_size, num_layers, output_size, dropout=0.0):
        super().__init__()
        self.lstm = nn.LSTM(input_size, hidden_size, num_layers, batch_first=True, dropout=dropout)
        self.fc = nn.Linear(hidden_size, output_size)

    def forward(self, x, h0=None, c0=None):
        state = (self.lstm.num_layers, x.shape[0], self.lstm.hidden_size)
        if h0 is None:
            h0 = torch.randn(state, device=x.device, dtype=x.dtype)
        if c0 is None:
            c0 = torch.randn(state, device=x.device, dtype=x.dtype)
        output, _ = self.lstm(x, (h0, c0))
        return self.fc(output[:, -1])


def get_inputs(batch_size=10, seq_len=512, input_size=128, **sizes):
    return [torch.rand(batch_size, seq_len, input_size)]


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
