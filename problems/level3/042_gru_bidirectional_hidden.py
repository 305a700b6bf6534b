"""Bidirectional GRU of several layers, returning the final hidden state of each layer and direction."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=10, seq_len=512, input_size=128, hidden_size=256, num_layers=6),
    "small": dict(batch_size=4, seq_len=32, input_size=16, hidden_size=32, num_layers=3),
}


class Model(nn.Module):
    def __init__(self, input_size, hidden_size, num_layers=3, bias=True, batch_first=False):
        super().__init__()
        self.gru = nn.GRU(input_size, hidden_size, num_layers, bias, batch_first, bidirectional=True)

    def forward(self, x, h0):
        _, hidden = self.gru(x, h0)
        return hidden


def get_inputs(batch_size=10, seq_len=512, input_size=128, hidden_size=256, num_layers=6):
    h0 = (2 * num_layers, batch_size, hidden_size)
    return [torch.rand(seq_len, batch_size, input_size), torch.rand(h0)]


def get_init_inputs(input_size=128, hidden_size=256, num_layers=6, **sizes):
    return [input_size, hidden_size, num_layers]


def get_flops(batch_size=10, seq_len=512, input_size=128, hidden_size=256, num_layers=6):
    # both directions: matmuls of 3 gates with the input (above the first layer both directions of the
    # layer below) and the hidden state;
    # per unit: sums of the gates (9: two products and two biases each), reset of the third, two
    # sigmoids (4), tanh, blend with the old state (4)
    widths = input_size + (3 * num_layers - 2) * hidden_size
    return 2 * batch_size * seq_len * hidden_size * (2 * 3 * widths + 23 * num_layers)
