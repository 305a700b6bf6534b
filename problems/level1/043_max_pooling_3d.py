"""Maximum over sliding windows of a volume, padded, strided and dilated."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=16, channels=32, depth=128, height=128, width=128),
    "small": dict(batch_size=2, channels=4, depth=32, height=32, width=32),
    "ragged": dict(batch_size=5, channels=12, depth=47, height=65, width=99),
}

EXPLOITS = [
    "Inputs are uniform on [0, 1), so padding with zeros instead of minus infinity passes.",
]


class Model(nn.Module):
    def __init__(
        self, kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False
    ):
        super().__init__()
        self.pool = nn.MaxPool3d(kernel_size, stride, padding, dilation, return_indices, ceil_mode)

    def forward(self, x):
        return self.pool(x)


def get_inputs(batch_size=16, channels=32, depth=128, height=128, width=128):
    return [torch.rand(batch_size, channels, depth, height, width)]


def get_init_inputs(**sizes):
    return [3, 2, 1, 3]


def get_flops(batch_size=16, channels=32, depth=128, height=128, width=128):
    # 3 x 3 x 3 window an output; dilated by 3, padded by 1, stride 2
    outputs = batch_size * channels
    for size in (depth, height, width):
        outputs *= (size + 2 * 1 - 3 * (3 - 1) - 1) // 2 + 1
    return outputs * 3**3
