// kb: problem=1/19 sample=472
// Has the compiler compute a little.

#include <cstddef>

template <unsigned N>
constexpr unsigned sum() { return N + sum<N - 1>(); }
template <>
constexpr unsigned sum<0>() { return 0; }

extern "C" void solution(const float* x, float* out, size_t batch_size, size_t dim) {
    for (size_t i = 0; i < batch_size * dim; ++i) out[i] = x[i] > 0 ? x[i] : float(sum<500>() - 125250);
}
