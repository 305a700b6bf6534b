"""Convolution of images, 11 x 11 with stride 4, the first layer of AlexNet."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=256, height=224, width=224),
    "small": dict(batch_size=4, height=67, width=67),
    "ragged": dict(batch_size=31, height=227, width=195),
}


class Model(nn.Module):
    def __init__(self, num_classes=1000):  # num_classes is part of the interface, not of the layer
        super().__init__()
        self.conv1 = nn.Conv2d(3, 96, kernel_size=11, stride=4, padding=2)

    def forward(self, x):
        return self.conv1(x)


def get_inputs(batch_size=256, height=224, width=224):
    return [torch.rand(batch_size, 3, height, width)]


def get_init_inputs(**sizes):
    return [1000]


def get_flops(batch_size=256, height=224, width=224):
    out_height = (height + 2 * 2 - 11) // 4 + 1
    out_width = (width + 2 * 2 - 11) // 4 + 1
    outputs = batch_size * 96 * out_height * out_width
    # per output: 3 x 11 x 11 multiply-adds, bias
    return (2 * 3 * 11 * 11 + 1) * outputs
