"""Mean over sliding windows of a sequence; padding zeros count in the divisor."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=64, channels=128, length=65536, kernel_size=8, stride=1, padding=4),
    "small": dict(batch_size=4, channels=16, length=1024, kernel_size=8, stride=1, padding=4),
    "ragged": dict(batch_size=30, channels=100, length=9999, kernel_size=5, stride=3, padding=2),
}


class Model(nn.Module):
    def __init__(self, kernel_size, stride=1, padding=0):
        super().__init__()
        self.pool = nn.AvgPool1d(kernel_size, stride, padding)

    def forward(self, x):
        return self.pool(x)


def get_inputs(batch_size=64, channels=128, length=65536, **sizes):
    return [torch.rand(batch_size, channels, length)]


def get_init_inputs(kernel_size=8, stride=1, padding=4, **sizes):
    return [kernel_size, stride, padding]


def get_flops(batch_size=64, channels=128, length=65536, kernel_size=8, stride=1, padding=4):
    # window size an output
    outputs = (length + 2 * padding - kernel_size) // stride + 1
    return batch_size * channels * outputs * kernel_size
