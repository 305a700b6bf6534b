# kb: problem=1/19 sample=15
"""ReLU in Helion, with a configuration that was chosen by hand: tuning would take longer than a step may."""

import helion
import helion.language as hl
import torch
import torch.nn as nn


@helion.kernel(config=helion.Config(block_sizes=[1024], num_warps=4))
def relu_tiles(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        y[tile] = torch.relu(x[tile])
    return y


class ModelNew(nn.Module):
    def forward(self, x):
        return relu_tiles(x.view(-1)).view(x.shape)
