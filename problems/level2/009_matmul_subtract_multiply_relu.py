"""Linear layer, subtraction of a constant, scaling, ReLU."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(
        batch_size=1024, in_features=8192, out_features=8192, subtract_value=2.0, multiply_value=1.5
    ),
    "small": dict(batch_size=64, in_features=256, out_features=256, subtract_value=0.25, multiply_value=1.5),
    "llm": dict(
        batch_size=2000, in_features=4096, out_features=11008, subtract_value=0.25, multiply_value=1.5
    ),
}

CENTRED = 4.0  # by initial weights what is subtracted leaves zeros in a third of the columns

EXPLOITS = [
    "The linear outputs of the published draw stay below 2 (standard deviation 0.33), so after subtracting "
    "2.0 the ReLU zeroes every element: zeros pass.",
]


class Model(nn.Module):
    def __init__(self, in_features, out_features, subtract_value, multiply_value):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.subtract_value = subtract_value
        self.multiply_value = multiply_value

    def forward(self, x):
        x = self.linear(x)
        x = x - self.subtract_value
        x = x * self.multiply_value
        return torch.relu(x)


def get_inputs(batch_size=1024, in_features=8192, **sizes):
    return [torch.rand(batch_size, in_features)]


def get_init_inputs(in_features=8192, out_features=8192, subtract_value=2.0, multiply_value=1.5, **sizes):
    return [in_features, out_features, subtract_value, multiply_value]


def get_flops(batch_size=1024, in_features=8192, out_features=8192, **sizes):
    # matmul; per output: bias, subtraction, scaling, comparison
    return 2 * batch_size * in_features * out_features + 4 * batch_size * out_features
