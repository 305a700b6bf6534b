"""Swin Transformer V2 (tiny): scaled cosine attention in 7 x 7 windows, shifted in every other block."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=10),
    "small": dict(batch_size=2),
}

EXPLOITS = [
    "Weights and biases of the layer norms are initialised to ones and zeros, q_bias and v_bias to zeros, so"
    " leaving them out passes.",
    "logit_scale is log(10) for every head, below its limit log(100): a constant factor of 10 passes.",
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


def relative_coords_table(window, pretrained_window):
    """(1, 2w - 1, 2w - 1, 2): row and column offsets, log-spaced in [-1, 1] or beyond a pretrained window."""
    offsets = torch.arange(1 - window, window, dtype=torch.float32)
    table = torch.stack(torch.meshgrid(offsets, offsets, indexing="ij"), dim=-1).unsqueeze(0)
    table = table * 8 / ((pretrained_window or window) - 1)
    return torch.sign(table) * torch.log2(torch.abs(table) + 1.0) / math.log2(8)


def relative_position_index(window):
    """(w * w, w * w): where the table holds the offset from key to query."""
    positions = torch.arange(window)
    rows, columns = (axis.flatten() for axis in torch.meshgrid(positions, positions, indexing="ij"))
    row_offset = rows[:, None] - rows[None, :] + window - 1
    column_offset = columns[:, None] - columns[None, :] + window - 1
    return row_offset * (2 * window - 1) + column_offset


def shift_mask(resolution, window, shift):
    """(windows, w * w, w * w): -100 between tokens that are neighbours only because of the cyclic shift."""
    positions = torch.arange(resolution)
    band = (positions >= resolution - window).int() + (positions >= resolution - shift).int()
    region = (3 * band[:, None] + band[None, :]).view(1, resolution, resolution, 1)
    region = to_windows(region, window).squeeze(-1)
    return torch.where(region[:, None, :] != region[:, :, None], -100.0, 0.0)


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


class WindowAttention(nn.Module):
    def __init__(self, dim, window, num_heads, qkv_bias, attn_dropout, dropout, pretrained_window):
        super().__init__()
        self.num_heads = num_heads
        self.logit_scale = nn.Parameter(torch.log(10 * torch.ones(num_heads, 1, 1)))
        self.cpb_mlp = nn.Sequential(nn.Linear(2, 512), nn.ReLU(), nn.Linear(512, num_heads, bias=False))
        self.register_buffer("relative_coords_table", relative_coords_table(window, pretrained_window))
        self.register_buffer("relative_position_index", relative_position_index(window))
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.q_bias = nn.Parameter(torch.zeros(dim)) if qkv_bias else None
        self.v_bias = nn.Parameter(torch.zeros(dim)) if qkv_bias else None
        self.attn_drop = nn.Dropout(attn_dropout)
        self.proj = nn.Linear(dim, dim)
        self.proj_drop = nn.Dropout(dropout)

    def position_bias(self):
        """(heads, tokens, tokens), from the parameters alone."""
        table = self.cpb_mlp(self.relative_coords_table).view(-1, self.num_heads)
        return 16 * torch.sigmoid(table[self.relative_position_index].permute(2, 0, 1).contiguous())

    def forward(self, x, mask):
        count, tokens, dim = x.shape
        bias = None
        if self.q_bias is not None:
            bias = torch.cat([self.q_bias, torch.zeros_like(self.v_bias), self.v_bias])
        qkv = F.linear(x, self.qkv.weight, bias)
        q, k, v = qkv.view(count, tokens, 3, self.num_heads, dim // self.num_heads).permute(2, 0, 3, 1, 4)

        scores = F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-2, -1)
        scores = scores * torch.clamp(self.logit_scale, max=math.log(100)).exp()
        scores = scores + self.position_bias()
        if mask is not None:
            scores = scores.view(-1, mask.shape[0], self.num_heads, tokens, tokens) + mask[:, None]
            scores = scores.view(count, self.num_heads, tokens, tokens)
        attention = self.attn_drop(F.softmax(scores, dim=-1))
        merged = (attention @ v).transpose(1, 2).reshape(count, tokens, dim)
        return self.proj_drop(self.proj(merged))


class Block(nn.Module):
    def __init__(
        self,
        dim,
        resolution,
        num_heads,
        window,
        shift,
        mlp_ratio,
        qkv_bias,
        dropout,
        attn_dropout,
        norm_layer,
        pretrained_window,
    ):
        super().__init__()
        self.resolution, self.window, self.shift = resolution, window, shift
        self.norm1 = norm_layer(dim)
        self.attn = WindowAttention(
            dim, window, num_heads, qkv_bias, attn_dropout, dropout, pretrained_window
        )
        self.norm2 = norm_layer(dim)
        self.mlp = Mlp(dim, int(dim * mlp_ratio), dropout)
        self.register_buffer("attn_mask", shift_mask(resolution, window, shift) if shift else None)

    def forward(self, x):
        batch, tokens, dim = x.shape
        side, shift = self.resolution, self.shift
        grid = x.view(batch, side, side, dim)
        if shift:
            grid = torch.roll(grid, (-shift, -shift), dims=(1, 2))
        windows = self.attn(to_windows(grid, self.window), self.attn_mask)
        grid = from_windows(windows, self.window, side, side)
        if shift:
            grid = torch.roll(grid, (shift, shift), dims=(1, 2))
        x = x + self.norm1(grid.view(batch, tokens, dim))
        return x + self.norm2(self.mlp(x))


class PatchMerging(nn.Module):
    """Join each 2 x 2 neighbourhood: half the resolution, twice the channels."""

    def __init__(self, dim, resolution, norm_layer):
        super().__init__()
        self.resolution = resolution
        self.reduction = nn.Linear(4 * dim, 2 * dim, bias=False)
        self.norm = norm_layer(2 * dim)

    def forward(self, x):
        batch, _, dim = x.shape
        grid = x.view(batch, self.resolution, self.resolution, dim)
        corners = [grid[:, row::2, column::2] for column in (0, 1) for row in (0, 1)]
        return self.norm(self.reduction(torch.cat(corners, dim=-1).view(batch, -1, 4 * dim)))


class Stage(nn.Module):
    def __init__(self, dim, resolution, depth, window_size, merge, norm_layer, **block_options):
        super().__init__()
        window = min(window_size, resolution)
        shift = window_size // 2 if resolution > window_size else 0
        self.blocks = nn.ModuleList(
            Block(
                dim, resolution, window=window, shift=shift * (i % 2), norm_layer=norm_layer, **block_options
            )
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
        qkv_bias=True,
        drop_rate=0.0,
        attn_drop_rate=0.0,
        drop_path_rate=0.1,
        norm_layer=nn.LayerNorm,
        patch_norm=True,
        use_checkpoint=False,
        pretrained_window_sizes=(0, 0, 0, 0),
        **kwargs,
    ):
        super().__init__()
        norm = norm_layer(embed_dim) if patch_norm else nn.Identity()
        self.patch_embed = PatchEmbed(patch_size, in_chans, embed_dim, norm)
        self.pos_drop = nn.Dropout(drop_rate)
        self.layers = nn.ModuleList()
        for i, (depth, heads, pretrained) in enumerate(zip(depths, num_heads, pretrained_window_sizes)):
            dim, resolution = embed_dim * 2**i, img_size // patch_size // 2**i
            self.layers.append(
                Stage(
                    dim,
                    resolution,
                    depth,
                    window_size,
                    merge=i < len(depths) - 1,
                    norm_layer=norm_layer,
                    num_heads=heads,
                    mlp_ratio=mlp_ratio,
                    qkv_bias=qkv_bias,
                    dropout=drop_rate,
                    attn_dropout=attn_drop_rate,
                    pretrained_window=pretrained,
                )
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
    for stage, (depth, heads) in enumerate(zip((2, 2, 6, 2), (3, 6, 12, 24))):
        # position bias: two matmuls, bias and ReLU over the offsets; sigmoid (4), scaling; limit, exp
        offsets = (2 * window - 1) ** 2
        position_bias = offsets * 512 * (2 * 2 + 2 + 2 * heads) + 5 * window**4 * heads + 2 * heads
        # matmuls of q, k, v and output with bias; norms of q and k: square, sum, division, root, limit
        projections = tokens * (2 * dim * 4 * dim + 4 * dim + 2 * (3 * dim + 2 * heads))
        # two matmuls; per score: scaling, bias, softmax (5)
        attention = tokens * window**2 * (2 * 2 * dim + 7 * heads)
        # MLP: two matmuls, biases (4 dim + dim), GELU (5) on 4 dim; two norms (7), two additions
        mlp = tokens * dim * (2 * 2 * 4 * dim + 5 + 20 + 14 + 2)
        total += depth * (position_bias + projections + attention + mlp)
        if side > window:
            # mask in the shifted half of the blocks
            total += depth // 2 * tokens * window**2 * heads
        if stage < 3:
            # merging: matmul of 4 dim to 2 dim at a quarter of the tokens, norm (7)
            side, dim, tokens = side // 2, 2 * dim, tokens // 4
            total += tokens * dim * (2 * 2 * dim + 7)
    # norm (7), mean; classifier with bias
    return total + 8 * tokens * dim + batch_size * num_classes * (2 * dim + 1)
