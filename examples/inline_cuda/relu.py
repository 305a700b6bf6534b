# kb: problem=1/19 sample=0
"""ReLU as inline CUDA: four elements a thread where the pointers are aligned."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <torch/extension.h>

__global__ void relu4(const float4* x, float4* y, size_t n4) {
    size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (i < n4) {
        float4 v = x[i];
        y[i] = make_float4(fmaxf(v.x, 0.f), fmaxf(v.y, 0.f), fmaxf(v.z, 0.f), fmaxf(v.w, 0.f));
    }
}

__global__ void relu_rest(const float* x, float* y, size_t begin, size_t n) {
    size_t i = begin + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], 0.f);
}

torch::Tensor relu(torch::Tensor x) {
    auto y = torch::empty_like(x);
    size_t n = x.numel(), n4 = n / 4;
    auto in = x.data_ptr<float>();
    auto out = y.data_ptr<float>();
    if (n4) relu4<<<(n4 + 255) / 256, 256>>>((const float4*)in, (float4*)out, n4);
    if (n % 4) relu_rest<<<1, 4>>>(in, out, n4 * 4, n);
    return y;
}
"""

extension = load_inline(
    name="kb_relu",
    cpp_sources="torch::Tensor relu(torch::Tensor x);",
    cuda_sources=CUDA,
    functions=["relu"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.relu(x.contiguous())
