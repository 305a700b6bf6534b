"""DenseNet transition layer: batch norm, ReLU, 1x1 convolution, average pooling."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(
        batch_size=128, num_input_features=32, num_output_features=64, height=256, width=256
    ),
    "small": dict(batch_size=4, num_input_features=32, num_output_features=64, height=32, width=32),
}

EXPLOITS = [
    "BatchNorm weights and biases are initialised to ones and zeros, so leaving them out passes.",
]


class Model(nn.Module):
    def __init__(self, num_input_features, num_output_features):
        super().__init__()
        self.transition = nn.Sequential(
            nn.BatchNorm2d(num_input_features),
            nn.ReLU(),
            nn.Conv2d(num_input_features, num_output_features, 1, bias=False),
            nn.AvgPool2d(2),
        )

    def forward(self, x):
        return self.transition(x)


def get_inputs(batch_size=128, num_input_features=32, height=256, width=256, **sizes):
    return [torch.rand(batch_size, num_input_features, height, width)]


def get_init_inputs(num_input_features=32, num_output_features=64, **sizes):
    return [num_input_features, num_output_features]


def get_flops(batch_size=128, num_input_features=32, num_output_features=64, height=256, width=256):
    pixels = batch_size * height * width
    pooled = batch_size * (height // 2) * (width // 2)
    # per input: norm (7), comparison; per output of the convolution: its taps; pooling (2 x 2)
    convolution = 2 * pixels * num_input_features * num_output_features
    return 8 * pixels * num_input_features + convolution + 4 * pooled * num_output_features
