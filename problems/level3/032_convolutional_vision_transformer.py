"""Convolutional patches flattened to one token, class token, transformer encoder, classifier."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(
        batch_size=10,
        image_size=32,
        in_channels=3,
        embed_dim=128,
        num_heads=4,
        num_classes=1000,
    ),
    "small": dict(
        batch_size=4,
        image_size=32,
        in_channels=3,
        embed_dim=32,
        num_heads=4,
        num_classes=100,
    ),
}

CENTRED = 2.0  # by initial weights some units are zero for all inputs

EXPLOITS = [
    "Weights and biases of the layer norms are initialised to ones and zeros, the class token and the biases"
    " of the attention to zeros, so leaving them out passes.",
]


class Model(nn.Module):
    def __init__(
        self,
        num_classes,
        embed_dim=512,
        num_heads=8,
        num_layers=6,
        mlp_ratio=4.0,
        patch_size=4,
        in_channels=3,
        image_size=32,
    ):
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, embed_dim, kernel_size=patch_size, stride=patch_size)
        self.linear_proj = nn.Linear(embed_dim * (image_size // patch_size) ** 2, embed_dim)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, embed_dim))
        self.transformer_layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                embed_dim, num_heads, int(embed_dim * mlp_ratio), dropout=0.0, batch_first=True
            )
            for _ in range(num_layers)
        )
        self.fc_out = nn.Linear(embed_dim, num_classes)

    def forward(self, x):
        token = self.linear_proj(self.conv1(x).flatten(1))
        cls_tokens = self.cls_token.expand(x.shape[0], -1, -1)
        x = torch.cat([cls_tokens, token.unsqueeze(1)], dim=1)
        for layer in self.transformer_layers:
            x = layer(x)
        return self.fc_out(x[:, 0])


def get_inputs(batch_size=10, image_size=32, in_channels=3, **sizes):
    return [torch.rand(batch_size, in_channels, image_size, image_size)]


def get_init_inputs(embed_dim=128, num_heads=4, num_classes=1000, **sizes):
    return [num_classes, embed_dim, num_heads]


def get_flops(batch_size=10, image_size=32, in_channels=3, embed_dim=128, num_heads=4, num_classes=1000):
    dim, mlp_dim, num_layers = embed_dim, 4 * embed_dim, 6
    patches = (image_size // 4) ** 2
    # convolution of 4 x 4 patches and matmul, each with bias
    embedding = batch_size * (patches * dim * (2 * in_channels * 4 * 4 + 1) + dim * (2 * patches * dim + 1))
    # on two tokens an image: matmuls of q, k, v, output and MLP; their biases (5 dim + mlp_dim),
    # ReLU, two additions, two norms (7)
    layer = 2 * batch_size * (2 * dim * (4 * dim + 2 * mlp_dim) + 21 * dim + 2 * mlp_dim)
    # two matmuls; per score: softmax (5); scaling of queries and keys
    attention = 4 * batch_size * (num_heads * (2 * 2 * (dim // num_heads) + 5) + dim)
    classifier = batch_size * num_classes * (2 * dim + 1)
    return embedding + num_layers * (layer + attention) + classifier
