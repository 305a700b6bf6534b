// kb: problem=1/1 sample=0
// Square FP32 matrix product: 128 x 128 tiles in shared memory, 8 x 8 results a thread.

#include <cstddef>

constexpr int TILE = 128, STEP = 8, EACH = 8, THREADS = 256;

__global__ __launch_bounds__(THREADS) void matmul(const float* A, const float* B, float* C, int n) {
    __shared__ float a[STEP][TILE], b[STEP][TILE];
    int row0 = blockIdx.y * TILE, col0 = blockIdx.x * TILE;
    int ty = threadIdx.x / (TILE / EACH), tx = threadIdx.x % (TILE / EACH);
    float sum[EACH][EACH] = {};

    for (int k0 = 0; k0 < n; k0 += STEP) {
        for (int i = threadIdx.x; i < TILE * STEP; i += THREADS) {
            int r = i / STEP, k = i % STEP;
            a[k][r] = row0 + r < n && k0 + k < n ? A[size_t(row0 + r) * n + k0 + k] : 0.f;
            int c = i % TILE, l = i / TILE;
            b[l][c] = col0 + c < n && k0 + l < n ? B[size_t(k0 + l) * n + col0 + c] : 0.f;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < STEP; k++) {
            float ra[EACH], rb[EACH];
#pragma unroll
            for (int i = 0; i < EACH; i++) ra[i] = a[k][ty * EACH + i];
#pragma unroll
            for (int j = 0; j < EACH; j++) rb[j] = b[k][tx + j * (TILE / EACH)];
#pragma unroll
            for (int i = 0; i < EACH; i++)
#pragma unroll
                for (int j = 0; j < EACH; j++) sum[i][j] += ra[i] * rb[j];
        }
        __syncthreads();
    }
    for (int i = 0; i < EACH; i++)
        for (int j = 0; j < EACH; j++) {
            int row = row0 + ty * EACH + i, col = col0 + tx + j * (TILE / EACH);
            if (row < n && col < n) C[size_t(row) * n + col] = sum[i][j];
        }
}

extern "C" void solution(const float* A, const float* B, float* output, size_t n) {
    unsigned tiles = (n + TILE - 1) / TILE;
    matmul<<<dim3(tiles, tiles), THREADS>>>(A, B, output, int(n));
}
