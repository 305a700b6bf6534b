# kb: problem=1/94 sample=0
"""Mean squared error as inline CUDA: one pass with a sum a block, then one block for the sums."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <torch/extension.h>

constexpr int THREADS = 512, BLOCKS = 2048;

__device__ double block_sum(double value) {
    __shared__ double parts[THREADS / 32];
    for (int lane = 16; lane; lane /= 2) value += __shfl_down_sync(~0u, value, lane);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    value = threadIdx.x < THREADS / 32 ? parts[threadIdx.x] : 0;
    for (int lane = 16; lane; lane /= 2) value += __shfl_down_sync(~0u, value, lane);
    return value;
}

__global__ void squares(const float* a, const float* b, double* sums, size_t n) {
    double sum = 0;
    for (size_t i = blockIdx.x * size_t(THREADS) + threadIdx.x; i < n; i += size_t(THREADS) * BLOCKS) {
        float d = a[i] - b[i];
        sum += d * d;
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

__global__ void total(const double* sums, float* mean, size_t n) {
    double sum = 0;
    for (int i = threadIdx.x; i < BLOCKS; i += THREADS) sum += sums[i];
    sum = block_sum(sum);
    if (threadIdx.x == 0) *mean = float(sum / n);
}

torch::Tensor forward(torch::Tensor a, torch::Tensor b) {
    auto sums = torch::empty({BLOCKS}, a.options().dtype(torch::kDouble));
    auto mean = torch::empty({}, a.options());
    size_t n = a.numel();
    squares<<<BLOCKS, THREADS>>>(a.data_ptr<float>(), b.data_ptr<float>(), sums.data_ptr<double>(), n);
    total<<<1, THREADS>>>(sums.data_ptr<double>(), mean.data_ptr<float>(), n);
    return mean;
}
"""

extension = load_inline(
    name="kb_mse_loss",
    cpp_sources="torch::Tensor forward(torch::Tensor a, torch::Tensor b);",
    cuda_sources=CUDA,
    functions=["forward"],
)


class ModelNew(nn.Module):
    def forward(self, predictions, targets):
        return extension.forward(predictions.contiguous(), targets.contiguous())
