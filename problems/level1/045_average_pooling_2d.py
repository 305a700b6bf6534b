"""Mean over the tiles of an image; rows and columns that fill no tile are dropped."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=16, channels=64, height=2048, width=2048, kernel_size=11),
    "small": dict(batch_size=2, channels=8, height=130, width=130, kernel_size=11),
    "vision": dict(batch_size=255, channels=2048, height=7, width=7, kernel_size=7),
}


class Model(nn.Module):
    def __init__(self, kernel_size, stride=None, padding=0):
        super().__init__()
        self.pool = nn.AvgPool2d(kernel_size, stride, padding)

    def forward(self, x):
        return self.pool(x)


def get_inputs(batch_size=16, channels=64, height=2048, width=2048, **sizes):
    return [torch.rand(batch_size, channels, height, width)]


def get_init_inputs(kernel_size=11, **sizes):
    return [kernel_size]


def get_flops(batch_size=16, channels=64, height=2048, width=2048, kernel_size=11):
    # window size an output
    outputs = (height // kernel_size) * (width // kernel_size)
    return batch_size * channels * outputs * kernel_size**2
