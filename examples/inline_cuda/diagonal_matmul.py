# kb: problem=1/12 sample=0
"""Diagonal matrix times matrix as inline CUDA: a row is scaled by its element."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <torch/extension.h>

__global__ void scale_rows(const float* a, const float* b, float* c, size_t columns, size_t n) {
    size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (i < n) c[i] = a[i / columns] * b[i];
}

torch::Tensor forward(torch::Tensor a, torch::Tensor b) {
    auto c = torch::empty_like(b);
    size_t n = b.numel();
    scale_rows<<<unsigned((n + 255) / 256), 256>>>(
        a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), b.size(1), n);
    return c;
}
"""

extension = load_inline(
    name="kb_diagonal_matmul",
    cpp_sources="torch::Tensor forward(torch::Tensor a, torch::Tensor b);",
    cuda_sources=CUDA,
    functions=["forward"],
)


class ModelNew(nn.Module):
    def forward(self, a, b):
        return extension.forward(a.contiguous(), b.contiguous())
