// kb: problem=1/19 sample=144
// Works on eight elements at a time, and on what is left one by one.

#include <cstddef>

extern "C" void solution(const float* x, float* out, size_t batch_size, size_t dim) {
    size_t n = batch_size * dim, i = 0;
    for (; i + 8 <= n; i += 8)
        for (size_t j = i; j < i + 8; ++j) out[j] = x[j] > 0 ? x[j] : 0;
    for (; i < n; ++i) out[i] = x[i] > 0 ? x[i] : 0;
}
