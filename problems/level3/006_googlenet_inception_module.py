"""GoogLeNet inception module: four parallel branches of convolutions, concatenated by channel."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=10, height=224, width=224),
    "small": dict(batch_size=2, height=28, width=28),
}

# input; 1x1; reduction and 3x3; reduction and 5x5; pooling branch
CHANNELS = (480, 192, 96, 208, 16, 48, 64)


class Model(nn.Module):
    def __init__(self, in_channels, out_1x1, reduce_3x3, out_3x3, reduce_5x5, out_5x5, pool_proj):
        super().__init__()
        self.branch1x1 = nn.Conv2d(in_channels, out_1x1, 1)
        self.branch3x3 = nn.Sequential(
            nn.Conv2d(in_channels, reduce_3x3, 1),
            nn.Conv2d(reduce_3x3, out_3x3, 3, padding=1),
        )
        self.branch5x5 = nn.Sequential(
            nn.Conv2d(in_channels, reduce_5x5, 1),
            nn.Conv2d(reduce_5x5, out_5x5, 5, padding=2),
        )
        self.branch_pool = nn.Sequential(
            nn.MaxPool2d(3, stride=1, padding=1),
            nn.Conv2d(in_channels, pool_proj, 1),
        )

    def forward(self, x):
        branches = [self.branch1x1(x), self.branch3x3(x), self.branch5x5(x), self.branch_pool(x)]
        return torch.cat(branches, dim=1)


def get_inputs(batch_size=10, height=224, width=224):
    return [torch.rand(batch_size, CHANNELS[0], height, width)]


def get_init_inputs(**sizes):
    return list(CHANNELS)


def get_flops(batch_size=10, height=224, width=224):
    in_channels, out_1x1, reduce_3x3, out_3x3, reduce_5x5, out_5x5, pool_proj = CHANNELS
    reduced = out_1x1 + reduce_3x3 + reduce_5x5 + pool_proj
    # per pixel: convolutions with bias, max pooling (3 x 3)
    pointwise = reduced * (2 * in_channels + 1)
    spatial = out_3x3 * (2 * reduce_3x3 * 3**2 + 1) + out_5x5 * (2 * reduce_5x5 * 5**2 + 1)
    return batch_size * height * width * (pointwise + spatial + 9 * in_channels)
