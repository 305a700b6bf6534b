"""Maximum over sliding windows of an image, padded."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=32, channels=64, height=512, width=512, kernel_size=4, stride=1, padding=1),
    "small": dict(batch_size=2, channels=8, height=64, width=64, kernel_size=4, stride=1, padding=1),
    "vision": dict(batch_size=63, channels=64, height=112, width=112, kernel_size=3, stride=2, padding=1),
}

EXPLOITS = [
    "Inputs are uniform on [0, 1), so padding with zeros instead of minus infinity passes.",
]


class Model(nn.Module):
    def __init__(self, kernel_size, stride, padding, dilation):
        super().__init__()
        self.pool = nn.MaxPool2d(kernel_size, stride, padding, dilation)

    def forward(self, x):
        return self.pool(x)


def get_inputs(batch_size=32, channels=64, height=512, width=512, **sizes):
    return [torch.rand(batch_size, channels, height, width)]


def get_init_inputs(kernel_size=4, stride=1, padding=1, **sizes):
    return [kernel_size, stride, padding, 1]


def get_flops(batch_size=32, channels=64, height=512, width=512, kernel_size=4, stride=1, padding=1):
    # window size an output
    out_height = (height + 2 * padding - kernel_size) // stride + 1
    out_width = (width + 2 * padding - kernel_size) // stride + 1
    return batch_size * channels * out_height * out_width * kernel_size**2
