"""Mean over sliding windows of a volume, strided; padding zeros count in the divisor."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=16, channels=32, depth=128, height=128, width=256),
    "small": dict(batch_size=2, channels=4, depth=32, height=32, width=48),
    "ragged": dict(batch_size=5, channels=12, depth=47, height=65, width=98),
}


class Model(nn.Module):
    def __init__(self, kernel_size, stride=None, padding=0):
        super().__init__()
        self.pool = nn.AvgPool3d(kernel_size, stride, padding)

    def forward(self, x):
        return self.pool(x)


def get_inputs(batch_size=16, channels=32, depth=128, height=128, width=256):
    return [torch.rand(batch_size, channels, depth, height, width)]


def get_init_inputs(**sizes):
    return [3, 2, 1]


def get_flops(batch_size=16, channels=32, depth=128, height=128, width=256):
    # 3 x 3 x 3 window an output; padded by 1, stride 2
    outputs = batch_size * channels
    for size in (depth, height, width):
        outputs *= (size + 2 * 1 - 3) // 2 + 1
    return outputs * 3**3
