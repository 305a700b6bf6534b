"""Vision transformer (ViT): patches, class token, transformer encoder, classifier head.

The encoder takes the batch for the sequence (sequence first): attention at each
token position runs across the images, never across the tokens of an image.
"""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(
        batch_size=2,
        image_size=224,
        patch_size=16,
        num_classes=10,
        dim=512,
        depth=6,
        heads=8,
        mlp_dim=2048,
        channels=3,
    ),
    "small": dict(
        batch_size=3,
        image_size=64,
        patch_size=16,
        num_classes=10,
        dim=64,
        depth=2,
        heads=4,
        mlp_dim=128,
        channels=3,
    ),
}

EXPLOITS = [
    "Attention runs across the images, and the classifier reads the class token alone: the patches never"
    " reach the output. The result for any other image passes, as does leaving out all other tokens.",
    "The images' class tokens are equal, so one row, computed without softmax, passes for every image.",
    "The six encoder layers are copies of one layer: equal weights until they are trained.",
    "Weights and biases of the layer norms are initialised to ones and zeros, the biases of the attention to"
    " zeros, so leaving them out passes.",
]

TRIVIAL = dict.fromkeys(
    ["first sample", "other output", "previous output"],
    "The class token attends to the class tokens of the other images, which all start alike: no image reaches it.",
)


class Model(nn.Module):
    def __init__(
        self,
        image_size,
        patch_size,
        num_classes,
        dim,
        depth,
        heads,
        mlp_dim,
        channels=3,
        dropout=0.1,
        emb_dropout=0.1,
    ):
        super().__init__()
        assert image_size % patch_size == 0, "image_size must be a multiple of patch_size"
        patches = (image_size // patch_size) ** 2
        self.patch_size = patch_size
        self.pos_embedding = nn.Parameter(torch.randn(1, patches + 1, dim))
        self.patch_to_embedding = nn.Linear(channels * patch_size**2, dim)
        self.cls_token = nn.Parameter(torch.randn(1, 1, dim))
        self.dropout = nn.Dropout(emb_dropout)
        layer = nn.TransformerEncoderLayer(dim, heads, mlp_dim, dropout)
        self.transformer = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.mlp_head = nn.Sequential(
            nn.Linear(dim, mlp_dim), nn.GELU(), nn.Dropout(dropout), nn.Linear(mlp_dim, num_classes)
        )

    def forward(self, img):
        size = self.patch_size
        blocks = img.unfold(2, size, size).unfold(3, size, size)
        # a row holds successive blocks of one channel, not the channels of one patch
        patches = blocks.reshape(img.shape[0], -1, img.shape[1] * size**2)
        cls_tokens = self.cls_token.expand(img.shape[0], -1, -1)
        x = torch.cat([cls_tokens, self.patch_to_embedding(patches)], dim=1)
        x = self.dropout(x + self.pos_embedding)
        x = self.transformer(x)
        return self.mlp_head(x[:, 0])


def get_inputs(batch_size=2, image_size=224, channels=3, **sizes):
    return [torch.rand(batch_size, channels, image_size, image_size)]


def get_init_inputs(
    image_size=224,
    patch_size=16,
    num_classes=10,
    dim=512,
    depth=6,
    heads=8,
    mlp_dim=2048,
    channels=3,
    **sizes,
):
    return [image_size, patch_size, num_classes, dim, depth, heads, mlp_dim, channels, 0.0, 0.0]


def get_flops(
    batch_size=2,
    image_size=224,
    patch_size=16,
    num_classes=10,
    dim=512,
    depth=6,
    heads=8,
    mlp_dim=2048,
    channels=3,
):
    patches = (image_size // patch_size) ** 2
    tokens = batch_size * (patches + 1)
    scores = (patches + 1) * heads * batch_size**2
    # matmul and bias of the patches; position embedding
    embedding = batch_size * patches * dim * (2 * channels * patch_size**2 + 1) + tokens * dim
    # matmuls of q, k, v, output and MLP; their biases (5 dim + mlp_dim), ReLU, two additions, two norms (7)
    layer = tokens * (2 * dim * (4 * dim + 2 * mlp_dim) + 21 * dim + 2 * mlp_dim)
    # two matmuls; per score: softmax (5); scaling of queries and keys
    attention = scores * (2 * 2 * (dim // heads) + 5) + 2 * tokens * dim
    # two matmuls with bias, GELU (5)
    head = batch_size * (2 * mlp_dim * (dim + num_classes) + 6 * mlp_dim + num_classes)
    return embedding + depth * (layer + attention) + head
