# kb: problem=1/47
"""Sum over one dimension with CUB, a block a position."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <cub/cub.cuh>

constexpr int THREADS = 128;

__global__ void sum_rows(const float* x, float* y, int64_t rows, int64_t inner) {
    using Reduce = cub::BlockReduce<float, THREADS>;
    __shared__ typename Reduce::TempStorage storage;
    const int64_t base = blockIdx.x / inner * rows * inner + blockIdx.x % inner;
    float sum = 0;
    for (int64_t r = threadIdx.x; r < rows; r += THREADS) sum += x[base + r * inner];
    sum = Reduce(storage).Sum(sum);
    if (threadIdx.x == 0) y[blockIdx.x] = sum;
}

torch::Tensor sum(torch::Tensor x) {
    auto y = torch::empty({x.size(0), 1, x.size(2)}, x.options());
    sum_rows<<<y.numel(), THREADS, 0, at::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<float>(), y.data_ptr<float>(), x.size(1), x.size(2));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
}
"""

extension = load_inline("kb_cub", "torch::Tensor sum(torch::Tensor x);", CUDA, functions=["sum"])


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        assert dim == 1

    def forward(self, x):
        return extension.sum(x.contiguous())
