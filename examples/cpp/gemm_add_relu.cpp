// kb: problem=2/76 sample=0
// Linear layer, bias and ReLU on the host: four rows of the weight at a time share each load of x.

#include <cstddef>

extern "C" void solution(const float* x, const float* bias, const float* gemm_weight, float* output,
                         size_t batch_size, size_t in_features, size_t out_features) {
#pragma omp parallel for
    for (size_t r = 0; r < batch_size; r++) {
        const float* row = x + r * in_features;
        size_t o = 0;
        for (; o + 4 <= out_features; o += 4) {
            const float* w = gemm_weight + o * in_features;
            float s0 = 0, s1 = 0, s2 = 0, s3 = 0;
#pragma omp simd reduction(+ : s0, s1, s2, s3)
            for (size_t k = 0; k < in_features; k++) {
                s0 += row[k] * w[k];
                s1 += row[k] * w[k + in_features];
                s2 += row[k] * w[k + 2 * in_features];
                s3 += row[k] * w[k + 3 * in_features];
            }
            float sums[] = {s0, s1, s2, s3};
            for (int j = 0; j < 4; j++) {
                float value = sums[j] + bias[o + j];
                output[r * out_features + o + j] = value > 0.f ? value : 0.f;
            }
        }
        for (; o < out_features; o++) {
            float sum = bias[o];
            for (size_t k = 0; k < in_features; k++) sum += row[k] * gemm_weight[o * in_features + k];
            output[r * out_features + o] = sum > 0.f ? sum : 0.f;
        }
    }
}
