# Tiling: a block computes 64 x 64 results from strips in shared memory, a thread 4 x 4 of them in registers,
# so that each element that is loaded serves 64 products.
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <torch/extension.h>

constexpr int TILE = 64, DEPTH = 16, EACH = 4, SIDE = TILE / EACH;

__global__ void matmul_kernel(const float* A, const float* B, float* C, int m, int n, int k) {
    __shared__ float a[DEPTH][TILE + 1], b[DEPTH][TILE];
    int row0 = blockIdx.y * TILE, col0 = blockIdx.x * TILE, ty = threadIdx.x / SIDE, tx = threadIdx.x % SIDE;
    float sum[EACH][EACH] = {};
    for (int k0 = 0; k0 < k; k0 += DEPTH) {
        for (int i = threadIdx.x; i < TILE * DEPTH; i += SIDE * SIDE) {
            int r = i / DEPTH, d = i % DEPTH;  // neighbouring threads read neighbouring elements of a row of A
            a[d][r] = row0 + r < m && k0 + d < k ? A[int64_t(row0 + r) * k + k0 + d] : 0.f;
            int c = i % TILE, e = i / TILE;  // and of a row of B
            b[e][c] = col0 + c < n && k0 + e < k ? B[int64_t(k0 + e) * n + col0 + c] : 0.f;
        }
        __syncthreads();
        for (int d = 0; d < DEPTH; d++) {
            float x[EACH], y[EACH];
            for (int i = 0; i < EACH; i++) x[i] = a[d][ty + i * SIDE];
            for (int j = 0; j < EACH; j++) y[j] = b[d][tx + j * SIDE];
            for (int i = 0; i < EACH; i++)
                for (int j = 0; j < EACH; j++) sum[i][j] += x[i] * y[j];
        }
        __syncthreads();
    }
    for (int i = 0; i < EACH; i++)
        for (int j = 0; j < EACH; j++) {
            int row = row0 + ty + i * SIDE, col = col0 + tx + j * SIDE;
            if (row < m && col < n) C[int64_t(row) * n + col] = sum[i][j];
        }
}

torch::Tensor matmul(torch::Tensor a, torch::Tensor b) {
    int m = a.size(0), k = a.size(1), n = b.size(1);
    auto out = torch::empty({m, n}, a.options());
    dim3 grid((n + TILE - 1) / TILE, (m + TILE - 1) / TILE);
    matmul_kernel<<<grid, SIDE * SIDE>>>(a.data_ptr<float>(), b.data_ptr<float>(), out.data_ptr<float>(), m, n, k);
    return out;
}
"""

module = load_inline("matmul", "torch::Tensor matmul(torch::Tensor a, torch::Tensor b);", CUDA, functions=["matmul"])


class ModelNew(nn.Module):
    def forward(self, a, b):
        return module.matmul(a, b)
