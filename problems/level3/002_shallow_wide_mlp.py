"""Shallow, wide multi-layer perceptron: linear layers with ReLU between them."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=128, input_size=16384, hidden_size=32768, output_size=16384),
    "small": dict(batch_size=16, input_size=512, hidden_size=1024, output_size=512),
}


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


def get_inputs(batch_size=128, input_size=16384, **sizes):
    return [torch.rand(batch_size, input_size)]


def get_init_inputs(input_size=16384, hidden_size=32768, output_size=16384, **sizes):
    return [input_size, [hidden_size, hidden_size], output_size]


def get_flops(batch_size=128, input_size=16384, hidden_size=32768, output_size=16384):
    weights = input_size * hidden_size + hidden_size * hidden_size + hidden_size * output_size
    # matmuls; bias on every layer; comparison on the two hidden ones
    return batch_size * (2 * weights + 4 * hidden_size + output_size)
