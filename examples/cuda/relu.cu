// kb: problem=1/19 sample=1
// ReLU: four elements a thread; the device allocator aligns the pointers.

#include <cstddef>

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

extern "C" void solution(const float* x, float* output, size_t batch_size, size_t dim) {
    size_t n = batch_size * dim, n4 = n / 4;
    if (n4) relu4<<<unsigned((n4 + 255) / 256), 256>>>((const float4*)x, (float4*)output, n4);
    if (n % 4) relu_rest<<<1, 4>>>(x, output, n4 * 4, n);
}
