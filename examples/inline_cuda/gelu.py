# kb: problem=1/88 sample=0
"""GELU (tanh form) as inline CUDA: one pass, four elements a thread, where eager makes eight."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <torch/extension.h>

__device__ float gelu(float x) {
    float inner = 0.7978845608f * (x + 0.044715f * x * x * x);
    return 0.5f * x * (1.f + tanhf(inner));
}

__global__ void gelu_kernel(const float* x, float* y, size_t n) {
    size_t i = 4 * (blockIdx.x * size_t(blockDim.x) + threadIdx.x);
    if (i + 3 < n) {
        float4 v = *reinterpret_cast<const float4*>(x + i);
        *reinterpret_cast<float4*>(y + i) = make_float4(gelu(v.x), gelu(v.y), gelu(v.z), gelu(v.w));
    } else {
        for (; i < n; i++) y[i] = gelu(x[i]);
    }
}

torch::Tensor forward(torch::Tensor x) {
    auto y = torch::empty_like(x);
    size_t n = x.numel();
    gelu_kernel<<<unsigned((n + 1023) / 1024), 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""

extension = load_inline(
    name="kb_gelu",
    cpp_sources="torch::Tensor forward(torch::Tensor x);",
    cuda_sources=CUDA,
    functions=["forward"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.forward(x.contiguous())
