# kb: problem=1/19 sample=13
"""ReLU in CuTe DSL: four neighbouring elements a thread."""

import cutlass.cute as cute
import torch
import torch.nn as nn
from cuda.bindings import driver
from cutlass.cute.runtime import from_dlpack

THREADS, WIDTH = 256, 4


@cute.kernel
def relu_tiles(x: cute.Tensor, y: cute.Tensor, tiles: cute.Int32):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    tile = block * THREADS + thread
    if tile < tiles:
        values = x[(None, tile)].load()
        y[(None, tile)].store(cute.where(values > 0, values, cute.zeros_like(values)))


@cute.jit
def relu(x: cute.Tensor, y: cute.Tensor, stream: driver.CUstream):
    x_tiles, y_tiles = cute.zipped_divide(x, (WIDTH,)), cute.zipped_divide(y, (WIDTH,))
    tiles = cute.size(x_tiles, mode=[1])
    blocks = cute.ceil_div(tiles, THREADS)
    relu_tiles(x_tiles, y_tiles, tiles).launch(grid=(blocks, 1, 1), block=(THREADS, 1, 1), stream=stream)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.compiled = {}

    def forward(self, x):
        y = torch.empty_like(x)
        stream = driver.CUstream(torch.cuda.current_stream().cuda_stream)
        tensors = [from_dlpack(tensor.view(-1), assumed_align=16) for tensor in (x, y)]
        if x.numel() not in self.compiled:
            self.compiled[x.numel()] = cute.compile(relu, *tensors, stream)
        self.compiled[x.numel()](*tensors, stream)
        return y
