# kb: problem=2/12 sample=0
"""Linear layer by the library, then bias, scaling and leaky ReLU in one inline CUDA kernel."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <torch/extension.h>

__global__ void epilogue(float* y, const float* bias, size_t columns, size_t n, float multiplier, float slope) {
    size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (i >= n) return;
    float v = (y[i] + bias[i % columns]) * multiplier;
    y[i] = v > 0.f ? v : v * slope;
}

torch::Tensor forward(torch::Tensor y, torch::Tensor bias, double multiplier, double slope) {
    size_t n = y.numel();
    epilogue<<<unsigned((n + 255) / 256), 256>>>(
        y.data_ptr<float>(), bias.data_ptr<float>(), y.size(1), n, multiplier, slope);
    return y;
}
"""

extension = load_inline(
    name="kb_gemm_epilogue",
    cpp_sources="torch::Tensor forward(torch::Tensor y, torch::Tensor bias, double multiplier, double slope);",
    cuda_sources=CUDA,
    functions=["forward"],
)


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, multiplier, negative_slope):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.multiplier = multiplier
        self.negative_slope = negative_slope

    def forward(self, x):
        y = torch.matmul(x, self.gemm.weight.t())
        return extension.forward(y, self.gemm.bias, self.multiplier, self.negative_slope)
