# kb: problem=1/40 sample=0
"""Layer norm of few, very long rows in Triton: partial sums over blocks of a row, then normalisation."""

import torch
import torch.nn as nn
import triton
import triton.language as tl

BLOCK = 4096


@triton.jit
def block_sums(x, sums, columns, blocks, BLOCK: tl.constexpr):
    block, row = tl.program_id(0), tl.program_id(1)
    offsets = block * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + row.to(tl.int64) * columns + offsets, mask=offsets < columns, other=0.0)
    tl.store(sums + row * blocks + block, tl.sum(values, 0))


@triton.jit
def block_squares(x, mean, squares, columns, blocks, BLOCK: tl.constexpr):
    block, row = tl.program_id(0), tl.program_id(1)
    offsets = block * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < columns
    values = tl.load(x + row.to(tl.int64) * columns + offsets, mask=inside, other=0.0)
    centred = tl.where(inside, values - tl.load(mean + row), 0.0)
    tl.store(squares + row * blocks + block, tl.sum(centred * centred, 0))


@triton.jit
def normalise(x, y, weight, bias, mean, scale, columns, BLOCK: tl.constexpr):
    block, row = tl.program_id(0), tl.program_id(1)
    offsets = block * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < columns
    at = row.to(tl.int64) * columns + offsets
    values = (tl.load(x + at, mask=inside) - tl.load(mean + row)) * tl.load(scale + row)
    values = values * tl.load(weight + offsets, mask=inside) + tl.load(bias + offsets, mask=inside)
    tl.store(y + at, values, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, normalized_shape):
        super().__init__()
        self.ln = nn.LayerNorm(normalized_shape)

    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        rows, columns = x.shape[0], self.ln.weight.numel()
        blocks = triton.cdiv(columns, BLOCK)
        grid = (blocks, rows)
        partial = torch.empty(rows, blocks, device=x.device)
        block_sums[grid](x, partial, columns, blocks, BLOCK=BLOCK)
        mean = partial.sum(1) / columns
        block_squares[grid](x, mean, partial, columns, blocks, BLOCK=BLOCK)
        scale = torch.rsqrt(partial.sum(1) / columns + self.ln.eps)
        normalise[grid](x, y, self.ln.weight, self.ln.bias, mean, scale, columns, BLOCK=BLOCK)
        return y
