# kb: problem=1/23 sample=1 device=cpu
"""Softmax as inline C++: rows in parallel, each normalised in its output."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP = r"""
#include <torch/extension.h>
#include <ATen/Parallel.h>
#include <algorithm>
#include <cmath>

torch::Tensor softmax(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int64_t rows = x.size(0), columns = x.size(1);
    const float* in = x.data_ptr<float>();
    float* out = y.data_ptr<float>();
    at::parallel_for(0, rows, 1, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; r++) {
            const float* a = in + r * columns;
            float* b = out + r * columns;
            float top = *std::max_element(a, a + columns);
            double sum = 0;
            for (int64_t c = 0; c < columns; c++) sum += b[c] = std::exp(a[c] - top);
            float scale = float(1.0 / sum);
            for (int64_t c = 0; c < columns; c++) b[c] *= scale;
        }
    });
    return y;
}
"""

extension = load_inline(name="kb_softmax", cpp_sources=CPP, functions=["softmax"], extra_cflags=["-O3"])


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.softmax(x.contiguous())
