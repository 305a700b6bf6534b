"""Swin-MLP (tiny): each head mixes the tokens of a window by a matrix; every other block is shifted."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=10),
    "small": dict(batch_size=2),
}

EXPLOITS = [
    "Weights and biases of the layer norms are initialised to ones and zeros, so leaving them out passes.",
]


def to_windows(x, window):
    """(batch, H, W, C) -> (batch * windows, window * window, C)."""
    batch, height, width, dim = x.shape
    x = x.view(batch, height // window, window, width // window, window, dim)
    return x.transpose(2, 3).reshape(-1, window * window, dim)


def from_windows(windows, window, height, width):
    """Inverse of to_windows."""
    x = windows.view(-1, height // window, width // window, window, window, windows.shape[-1])
    return x.transpose(2, 3).reshape(-1, height, width, windows.shape[-1])


class PatchEmbed(nn.Module):
    def __init__(self, patch_size, in_chans, embed_dim, norm):
        super().__init__()
        self.proj = nn.Conv2d(in_chans, embed_dim, kernel_size=patch_size, stride=patch_size)
        self.norm = norm

    def forward(self, x):
        return self.norm(self.proj(x).flatten(2).transpose(1, 2))


class Mlp(nn.Module):
    def __init__(self, dim, hidden_dim, dropout):
        super().__init__()
        self.fc1 = nn.Linear(dim, hidden_dim)
        self.fc2 = nn.Linear(hidden_dim, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        x = self.dropout(F.gelu(self.fc1(x)))
        return self.dropout(self.fc2(x))


class Block(nn.Module):
    def __init__(self, dim, resolution, num_heads, window, shift, mlp_ratio, dropout, norm_layer):
        super().__init__()
        self.resolution, self.num_heads, self.window, self.shift = resolution, num_heads, window, shift
        self.norm1 = norm_layer(dim)
        rows = num_heads * window**2
        self.spatial_mlp = nn.Conv1d(rows, rows, kernel_size=1, groups=num_heads)
        self.norm2 = norm_layer(dim)
        self.mlp = Mlp(dim, int(dim * mlp_ratio), dropout)

    def mix(self, windows):
        """Mix the tokens of each window, head by head."""
        count, tokens, dim = windows.shape
        x = windows.view(count, tokens, self.num_heads, dim // self.num_heads).transpose(1, 2)
        x = self.spatial_mlp(x.reshape(count, self.num_heads * tokens, dim // self.num_heads))
        return (
            x.view(count, self.num_heads, tokens, dim // self.num_heads)
            .transpose(1, 2)
            .reshape(windows.shape)
        )

    def forward(self, x):
        batch, tokens, dim = x.shape
        grid = self.norm1(x).view(batch, self.resolution, self.resolution, dim)
        before, after = (self.window - self.shift, self.shift) if self.shift else (0, 0)
        if self.shift:
            grid = F.pad(grid, [0, 0, before, after, before, after])
        side = grid.shape[1]
        grid = from_windows(self.mix(to_windows(grid, self.window)), self.window, side, side)
        grid = grid[:, before : side - after, before : side - after]
        x = x + grid.reshape(batch, tokens, dim)
        return x + self.mlp(self.norm2(x))


class PatchMerging(nn.Module):
    """Join each 2 x 2 neighbourhood: half the resolution, twice the channels."""

    def __init__(self, dim, resolution, norm_layer):
        super().__init__()
        self.resolution = resolution
        self.reduction = nn.Linear(4 * dim, 2 * dim, bias=False)
        self.norm = norm_layer(4 * dim)

    def forward(self, x):
        batch, _, dim = x.shape
        grid = x.view(batch, self.resolution, self.resolution, dim)
        corners = [grid[:, row::2, column::2] for column in (0, 1) for row in (0, 1)]
        return self.reduction(self.norm(torch.cat(corners, dim=-1).view(batch, -1, 4 * dim)))


class Stage(nn.Module):
    def __init__(self, dim, resolution, depth, num_heads, window_size, mlp_ratio, dropout, norm_layer, merge):
        super().__init__()
        window = min(window_size, resolution)
        shift = window_size // 2 if resolution > window_size else 0
        self.blocks = nn.ModuleList(
            Block(dim, resolution, num_heads, window, shift * (i % 2), mlp_ratio, dropout, norm_layer)
            for i in range(depth)
        )
        self.downsample = PatchMerging(dim, resolution, norm_layer) if merge else nn.Identity()

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.downsample(x)


class Model(nn.Module):
    """drop_path_rate, use_checkpoint and further keywords are accepted and have no effect, as published."""

    def __init__(
        self,
        img_size=224,
        patch_size=4,
        in_chans=3,
        num_classes=1000,
        embed_dim=96,
        depths=(2, 2, 6, 2),
        num_heads=(3, 6, 12, 24),
        window_size=7,
        mlp_ratio=4.0,
        drop_rate=0.0,
        drop_path_rate=0.1,
        norm_layer=nn.LayerNorm,
        patch_norm=True,
        use_checkpoint=False,
        **kwargs,
    ):
        super().__init__()
        norm = norm_layer(embed_dim) if patch_norm else nn.Identity()
        self.patch_embed = PatchEmbed(patch_size, in_chans, embed_dim, norm)
        self.pos_drop = nn.Dropout(drop_rate)
        self.layers = nn.ModuleList()
        for i, (depth, heads) in enumerate(zip(depths, num_heads)):
            dim, resolution = embed_dim * 2**i, img_size // patch_size // 2**i
            merge = i < len(depths) - 1
            self.layers.append(
                Stage(dim, resolution, depth, heads, window_size, mlp_ratio, drop_rate, norm_layer, merge)
            )
        self.norm = norm_layer(dim)
        self.head = nn.Linear(dim, num_classes)

    def forward(self, x):
        x = self.pos_drop(self.patch_embed(x))
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x).mean(dim=1))


def get_inputs(batch_size=10):
    return [torch.rand(batch_size, 3, 224, 224)]


def get_init_inputs(**sizes):
    return []


def get_flops(batch_size=10):
    side, dim, window, num_classes = 224 // 4, 96, 7, 1000
    tokens = batch_size * side**2
    # convolution of 4 x 4 patches, bias, norm (7)
    total = tokens * dim * (2 * 3 * 4 * 4 + 8)
    for stage, depth in enumerate((2, 2, 6, 2)):
        for block in range(depth):
            shifted = block % 2 == 1 and side > window
            padded = batch_size * (side + window) ** 2 if shifted else tokens
            # grouped convolution over the tokens of a window, bias
            total += padded * dim * (2 * window**2 + 1)
            # MLP: two matmuls, biases (4 dim + dim), GELU (5) on 4 dim; two norms (7), two additions
            total += tokens * dim * (2 * 2 * 4 * dim + 5 + 20 + 14 + 2)
        if stage < 3:
            # merging: norm (7), matmul of 4 dim to 2 dim at a quarter of the tokens
            total += tokens * dim * (7 + 2 * 2 * dim)
            side, dim, tokens = side // 2, 2 * dim, tokens // 4
    # norm (7), mean; classifier with bias
    return total + 8 * tokens * dim + batch_size * num_classes * (2 * dim + 1)
