import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP = r"""
#include <torch/extension.h>

torch::Tensor add(torch::Tensor a, torch::Tensor b) {
    auto out = torch::empty_like(a);
    const float *x = a.data_ptr<float>(), *y = b.data_ptr<float>();
    float* z = out.data_ptr<float>();
    int64_t n = a.numel();
#pragma omp parallel for simd
    for (int64_t i = 0; i < n; i++) z[i] = x[i] + y[i];
    return out;
}
"""

module = load_inline("add", CPP, functions=["add"], extra_cflags=["-O3", "-fopenmp", "-march=native"])


class ModelNew(nn.Module):
    def forward(self, a, b):
        return module.add(a, b)
