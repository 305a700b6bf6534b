# kb: problem=1/36 sample=0
"""RMS norm over channels as inline CUDA: a thread holds the channels of one position, so x is read once."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <torch/extension.h>

template <int CHANNELS>
__global__ void rms_norm(const float* x, float* y, size_t positions, size_t plane, float eps) {
    size_t p = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (p >= positions) return;
    size_t base = p / plane * plane * CHANNELS + p % plane;
    float v[CHANNELS], sum = 0.f;
#pragma unroll
    for (int c = 0; c < CHANNELS; c++) v[c] = x[base + c * plane];
#pragma unroll
    for (int c = 0; c < CHANNELS; c++) sum += v[c] * v[c];
    float scale = rsqrtf(sum / CHANNELS + eps);
#pragma unroll
    for (int c = 0; c < CHANNELS; c++) y[base + c * plane] = v[c] * scale;
}

__global__ void rms_norm_any(const float* x, float* y, size_t positions, size_t plane, int channels, float eps) {
    size_t p = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (p >= positions) return;
    size_t base = p / plane * plane * channels + p % plane;
    float sum = 0.f;
    for (int c = 0; c < channels; c++) sum += x[base + c * plane] * x[base + c * plane];
    float scale = rsqrtf(sum / channels + eps);
    for (int c = 0; c < channels; c++) y[base + c * plane] = x[base + c * plane] * scale;
}

torch::Tensor forward(torch::Tensor x, double eps) {
    auto y = torch::empty_like(x);
    size_t plane = x.size(2) * x.size(3), positions = x.size(0) * plane;
    unsigned blocks = (positions + 127) / 128;
    auto in = x.data_ptr<float>();
    auto out = y.data_ptr<float>();
    if (x.size(1) == 64) rms_norm<64><<<blocks, 128>>>(in, out, positions, plane, eps);
    else rms_norm_any<<<blocks, 128>>>(in, out, positions, plane, x.size(1), eps);
    return y;
}
"""

extension = load_inline(
    name="kb_rms_norm",
    cpp_sources="torch::Tensor forward(torch::Tensor x, double eps);",
    cuda_sources=CUDA,
    functions=["forward"],
)


class ModelNew(nn.Module):
    def __init__(self, num_features, eps=1e-5):
        super().__init__()
        self.eps = eps

    def forward(self, x):
        return extension.forward(x.contiguous(), self.eps)
