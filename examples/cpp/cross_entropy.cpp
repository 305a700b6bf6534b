// kb: problem=1/95 sample=1
// Cross entropy on the host: log-sum-exp of each row minus the logit of its target.

#include <cmath>
#include <cstddef>
#include <cstdint>

extern "C" void solution(const float* predictions, const int64_t* targets, float* output, size_t batch_size,
                         size_t num_classes) {
    double loss = 0;
#pragma omp parallel for reduction(+ : loss)
    for (size_t r = 0; r < batch_size; r++) {
        const float* row = predictions + r * num_classes;
        float top = row[0];
        for (size_t c = 1; c < num_classes; c++) top = row[c] > top ? row[c] : top;
        float sum = 0;
        for (size_t c = 0; c < num_classes; c++) sum += std::exp(row[c] - top);
        loss += top + std::log(sum) - row[targets[r]];
    }
    output[0] = float(loss / batch_size);
}
