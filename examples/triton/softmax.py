# kb: problem=1/23 sample=0
"""Softmax of long rows in Triton: a program a row, one pass for maximum and sum, one to write."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_rows(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    offsets = tl.arange(0, BLOCK)
    maximum = tl.full((BLOCK,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for begin in range(0, columns, BLOCK):
        inside = begin + offsets < columns
        values = tl.load(x + row + begin + offsets, mask=inside, other=float("-inf"))
        higher = tl.maximum(maximum, values)
        # a lane that has seen nothing yet stays at zero
        total = tl.where(higher == float("-inf"), 0.0, total * tl.exp(maximum - higher) + tl.exp(values - higher))
        maximum = higher
    top = tl.max(maximum, 0)
    scale = 1.0 / tl.sum(total * tl.exp(maximum - top), 0)
    for begin in range(0, columns, BLOCK):
        inside = begin + offsets < columns
        values = tl.load(x + row + begin + offsets, mask=inside)
        tl.store(y + row + begin + offsets, tl.exp(values - top) * scale, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        rows, columns = x.shape
        softmax_rows[(rows,)](x, y, columns, BLOCK=4096, num_warps=8)
        return y
