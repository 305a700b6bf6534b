"""Maximum over sliding windows of a sequence, padded and dilated."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=64, features=192, length=65536, kernel_size=8, stride=1, padding=4, dilation=3),
    "small": dict(batch_size=4, features=16, length=1024, kernel_size=8, stride=1, padding=4, dilation=3),
    "ragged": dict(batch_size=30, features=100, length=9999, kernel_size=5, stride=2, padding=2, dilation=1),
}

EXPLOITS = [
    "Inputs are uniform on [0, 1), so padding with zeros instead of minus infinity passes.",
]


class Model(nn.Module):
    def __init__(self, kernel_size, stride=None, padding=0, dilation=1, return_indices=False):
        super().__init__()
        self.pool = nn.MaxPool1d(kernel_size, stride, padding, dilation, return_indices)

    def forward(self, x):
        return self.pool(x)


def get_inputs(batch_size=64, features=192, length=65536, **sizes):
    return [torch.rand(batch_size, features, length)]


def get_init_inputs(kernel_size=8, stride=1, padding=4, dilation=3, **sizes):
    return [kernel_size, stride, padding, dilation, False]


def get_flops(batch_size=64, features=192, length=65536, kernel_size=8, stride=1, padding=4, dilation=3):
    # window size an output
    outputs = (length + 2 * padding - dilation * (kernel_size - 1) - 1) // stride + 1
    return batch_size * features * outputs * kernel_size
