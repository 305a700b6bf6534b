# kb: problem=1/19 sample=14
"""ReLU in TileLang: a block of 1024 elements for 256 threads."""

import tilelang
import tilelang.language as T
import torch
import torch.nn as nn

BLOCK = 1024


@tilelang.jit
def relu_of(n: int):
    @T.prim_func
    def relu_tiles(x: T.Tensor((n,), "float32"), y: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, BLOCK), threads=256) as block:
            for i in T.Parallel(BLOCK):
                y[block * BLOCK + i] = T.max(x[block * BLOCK + i], T.float32(0))

    return relu_tiles


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        relu_of(x.numel())(x.view(-1), y.view(-1))
        return y
