"""Deep, narrow multi-layer perceptron: sixteen hidden layers with ReLU."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=1024, input_size=8192, hidden_size=1024, hidden_layers=16, output_size=8192),
    "small": dict(batch_size=64, input_size=512, hidden_size=128, hidden_layers=16, output_size=512),
}

CENTRED = 1.0  # by initial weights some units are zero for all inputs

EXPLOITS = [
    "The signal shrinks in every layer of the default init while the biases do not: outputs of different"
    " inputs differ by less than 1e-5, so computing one row and repeating it passes.",
]


class Model(nn.Module):
    def __init__(self, input_size, hidden_layer_sizes, output_size):
        super().__init__()
        layers = []
        width = input_size
        for size in hidden_layer_sizes:
            layers += [nn.Linear(width, size), nn.ReLU()]
            width = size
        layers.append(nn.Linear(width, output_size))
        self.network = nn.Sequential(*layers)

    def forward(self, x):
        return self.network(x)


def get_inputs(batch_size=1024, input_size=8192, **sizes):
    return [torch.rand(batch_size, input_size)]


def get_init_inputs(input_size=8192, hidden_size=1024, hidden_layers=16, output_size=8192, **sizes):
    return [input_size, [hidden_size] * hidden_layers, output_size]


def get_flops(batch_size=1024, input_size=8192, hidden_size=1024, hidden_layers=16, output_size=8192):
    weights = hidden_size * (input_size + (hidden_layers - 1) * hidden_size + output_size)
    # matmuls; bias on every layer; comparison on the hidden ones
    return batch_size * (2 * weights + 2 * hidden_layers * hidden_size + output_size)
