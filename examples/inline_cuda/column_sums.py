# kb: problem=1/47 sample=0
"""Sum over the middle dimension as inline CUDA: a thread for each column, rows shared among a block's warps."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <torch/extension.h>

constexpr int WARPS = 16;

__global__ void column_sums(const float* x, float* y, int rows, int columns) {
    int column = blockIdx.x * 32 + threadIdx.x;
    const float* plane = x + blockIdx.y * size_t(rows) * columns;
    float sum = 0.f;
    if (column < columns) {
#pragma unroll 8
        for (int row = threadIdx.y; row < rows; row += WARPS) sum += plane[row * size_t(columns) + column];
    }
    __shared__ float parts[WARPS][32];
    parts[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y == 0 && column < columns) {
        for (int warp = 1; warp < WARPS; warp++) sum += parts[warp][threadIdx.x];
        y[blockIdx.y * size_t(columns) + column] = sum;
    }
}

torch::Tensor forward(torch::Tensor x) {
    auto y = torch::empty({x.size(0), 1, x.size(2)}, x.options());
    dim3 blocks((x.size(2) + 31) / 32, x.size(0));
    column_sums<<<blocks, dim3(32, WARPS)>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1), x.size(2));
    return y;
}
"""

extension = load_inline(
    name="kb_column_sums",
    cpp_sources="torch::Tensor forward(torch::Tensor x);",
    cuda_sources=CUDA,
    functions=["forward"],
)


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        assert dim == 1

    def forward(self, x):
        return extension.forward(x.contiguous())
