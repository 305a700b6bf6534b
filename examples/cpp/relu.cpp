// kb: problem=1/19 sample=2
// ReLU on the host, vectorised by the compiler.

#include <cstddef>

extern "C" void solution(const float* x, float* output, size_t batch_size, size_t dim) {
    size_t n = batch_size * dim;
#pragma omp parallel for simd
    for (size_t i = 0; i < n; i++) output[i] = x[i] > 0.f ? x[i] : 0.f;
}
