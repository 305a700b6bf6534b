"""Self-attention over the pixels of a feature map, residual addition, layer norm."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=2, embed_dim=128, num_heads=4, height=128, width=128),
    "small": dict(batch_size=2, embed_dim=64, num_heads=4, height=16, width=16),
}

EXPLOITS = [
    "For the published draw the scores are nearly equal: the mean of v in place of the attention changes the"
    " output by about 0.01 at most, which passes at a tolerance of 1e-2 save for single elements.",
    "Weight and bias of the layer norm are initialised to ones and zeros, the biases of the attention to"
    " zeros, so leaving them out passes.",
]


class Model(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.attn = nn.MultiheadAttention(embed_dim, num_heads)
        self.norm = nn.LayerNorm(embed_dim)

    def forward(self, x):
        batch, channels, height, width = x.shape
        x = x.view(batch, channels, height * width).permute(2, 0, 1)
        # the attention weights, averaged over the heads, are computed and left unused
        attended, _ = self.attn(x, x, x)
        x = self.norm(attended + x)
        return x.permute(1, 2, 0).view(batch, channels, height, width)


def get_inputs(batch_size=2, embed_dim=128, height=128, width=128, **sizes):
    return [torch.rand(batch_size, embed_dim, height, width)]


def get_init_inputs(embed_dim=128, num_heads=4, **sizes):
    return [embed_dim, num_heads]


def get_flops(batch_size=2, embed_dim=128, num_heads=4, height=128, width=128):
    tokens = batch_size * height * width
    scores = tokens * height * width * num_heads
    # matmuls of q, k, v and output with bias; scaling of q, addition, norm (7)
    projections = tokens * embed_dim * (2 * 4 * embed_dim + 4 + 9)
    # two matmuls; per score: softmax (5), average over the heads
    return projections + scores * (2 * 2 * (embed_dim // num_heads) + 6)
