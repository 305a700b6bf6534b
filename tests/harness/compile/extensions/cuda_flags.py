# kb: problem=1/19
"""Flags for nvcc that decide whether it compiles, and what it computes."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <torch/extension.h>

#ifdef __CUDA_ARCH__
#ifndef FLOOR
#error "FLOOR is not defined: the flags did not arrive"
#endif
#endif

__global__ void relu_kernel(const float* x, float* y, int64_t n) {
    auto above = [] __device__(float value) { return fmaxf(value, FLOOR); };
    int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
    if (i < n) y[i] = above(x[i]);
}

torch::Tensor relu(torch::Tensor x) {
    auto y = torch::empty_like(x);
    relu_kernel<<<(x.numel() + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
    return y;
}
"""

extension = load_inline(
    "kb_flags",
    "torch::Tensor relu(torch::Tensor x);",
    CUDA,
    functions="relu",
    extra_cuda_cflags=["-O3", "--use_fast_math", "--extended-lambda", "-DFLOOR=0.0f"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.relu(x)
