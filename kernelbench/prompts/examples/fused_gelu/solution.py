# Fusion: eight elementwise operators in one kernel, so that memory is read and written once.
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <torch/extension.h>

__device__ __forceinline__ float gelu(float x) {
    return 0.5f * x * (1.f + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)));
}

// Four neighbouring elements a thread; the number of features is a multiple of four.
__global__ void bias_gelu_kernel(const float4* x, const float4* bias, float4* out, int64_t n4, int features4) {
    int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= n4) return;
    float4 v = x[i], b = bias[i % features4];
    out[i] = make_float4(gelu(v.x + b.x), gelu(v.y + b.y), gelu(v.z + b.z), gelu(v.w + b.w));
}

torch::Tensor bias_gelu(torch::Tensor x, torch::Tensor bias) {
    TORCH_CHECK(x.size(-1) % 4 == 0, "the number of features must be a multiple of four");
    auto out = torch::empty_like(x);
    int64_t n4 = x.numel() / 4;
    auto from = (const float4*)x.data_ptr<float>(), added = (const float4*)bias.data_ptr<float>();
    bias_gelu_kernel<<<(n4 + 255) / 256, 256>>>(from, added, (float4*)out.data_ptr<float>(), n4, int(x.size(-1) / 4));
    return out;
}
"""

module = load_inline(
    "bias_gelu", "torch::Tensor bias_gelu(torch::Tensor x, torch::Tensor bias);", CUDA, functions=["bias_gelu"]
)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(features))

    def forward(self, x):
        return module.bias_gelu(x, self.bias)
