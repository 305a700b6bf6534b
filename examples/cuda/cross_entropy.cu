// kb: problem=1/95 sample=0
// Cross entropy in one pass over the logits: a block a row, running maximum and sum.

#include <cstddef>
#include <cstdint>
#include <math_constants.h>

struct Partial {
    float max, sum;
};

__device__ Partial merge(Partial a, Partial b) {
    float m = fmaxf(a.max, b.max);
    if (m == -CUDART_INF_F) return {m, 0.f};
    return {m, a.sum * expf(a.max - m) + b.sum * expf(b.max - m)};
}

__global__ void rows(const float* predictions, const int64_t* targets, float* loss, int classes, float share) {
    const float* row = predictions + size_t(blockIdx.x) * classes;
    Partial own = {-CUDART_INF_F, 0.f};
    for (int c = threadIdx.x; c < classes; c += blockDim.x) own = merge(own, {row[c], 1.f});
    for (int lane = 16; lane; lane /= 2)
        own = merge(own, {__shfl_xor_sync(~0u, own.max, lane), __shfl_xor_sync(~0u, own.sum, lane)});
    __shared__ Partial warps[32];
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = own;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < blockDim.x / 32; w++) own = merge(own, warps[w]);
        atomicAdd(loss, (own.max + logf(own.sum) - row[targets[blockIdx.x]]) * share);
    }
}

extern "C" void solution(const float* predictions, const int64_t* targets, float* output, size_t batch_size,
                         size_t num_classes) {
    cudaMemsetAsync(output, 0, sizeof(float));
    rows<<<unsigned(batch_size), 256>>>(predictions, targets, output, int(num_classes), 1.f / batch_size);
}
