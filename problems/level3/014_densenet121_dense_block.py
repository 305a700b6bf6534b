"""DenseNet block: each layer (batch norm, ReLU, 3x3 convolution) sees all features before it."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(
        batch_size=10, num_layers=6, num_input_features=32, growth_rate=32, height=224, width=224
    ),
    "small": dict(
        batch_size=2, num_layers=6, num_input_features=32, growth_rate=32, height=28, width=28
    ),
}

EXPLOITS = [
    "BatchNorm weights and biases are initialised to ones and zeros, so leaving them out passes.",
]


class Model(nn.Module):
    def __init__(self, num_layers, num_input_features, growth_rate):
        super().__init__()
        self.layers = nn.ModuleList()
        for index in range(num_layers):
            channels = num_input_features + index * growth_rate
            self.layers.append(
                nn.Sequential(
                    nn.BatchNorm2d(channels),
                    nn.ReLU(),
                    nn.Conv2d(channels, growth_rate, 3, padding=1, bias=False),
                    nn.Dropout(0.0),
                )
            )

    def forward(self, x):
        features = [x]
        for layer in self.layers:
            features.append(layer(x))
            x = torch.cat(features, dim=1)
        return x


def get_inputs(batch_size=10, num_input_features=32, height=224, width=224, **sizes):
    return [torch.rand(batch_size, num_input_features, height, width)]


def get_init_inputs(num_layers=6, num_input_features=32, growth_rate=32, **sizes):
    return [num_layers, num_input_features, growth_rate]


def get_flops(
    batch_size=10, num_layers=6, num_input_features=32, growth_rate=32, height=224, width=224
):
    # input channels of all layers together
    channels = sum(num_input_features + index * growth_rate for index in range(num_layers))
    # per pixel and input channel: norm (7), comparison, taps of the convolution
    return batch_size * height * width * channels * (8 + 2 * 9 * growth_rate)
