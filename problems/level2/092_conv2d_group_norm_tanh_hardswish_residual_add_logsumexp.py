"""2-D convolution, to which hardswish(tanh(group norm)) of itself is added; log-sum-exp over the channels."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=128, in_channels=8, out_channels=64, groups=16, height=128, width=128),
    "small": dict(batch_size=4, in_channels=8, out_channels=64, groups=16, height=32, width=32),
    "ragged": dict(batch_size=30, in_channels=7, out_channels=60, groups=15, height=129, width=97),
}

EXPLOITS = [
    "Weight and bias of the norm are initialised to ones and zeros, so leaving them out passes.",
]


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, groups, eps=1e-5):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.group_norm = nn.GroupNorm(groups, out_channels, eps=eps)

    def forward(self, x):
        convolved = self.conv(x)
        x = self.group_norm(convolved)
        x = torch.tanh(x)
        x = F.hardswish(x)
        return torch.logsumexp(convolved + x, dim=1, keepdim=True)


def get_inputs(batch_size=128, in_channels=8, height=128, width=128, **sizes):
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs(in_channels=8, out_channels=64, groups=16, **sizes):
    return [in_channels, out_channels, 3, groups]


def get_flops(batch_size=128, in_channels=8, out_channels=64, height=128, width=128, **sizes):
    outputs = batch_size * out_channels * (height - 2) * (width - 2)
    # convolution with 3 x 3 taps; per output of it: bias, group norm (7), tanh, hardswish (5), sum,
    # log-sum-exp (4)
    return 2 * outputs * in_channels * 9 + 19 * outputs
