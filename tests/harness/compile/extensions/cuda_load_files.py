# kb: problem=1/19
"""A C++ and a CUDA file with a header of their own, built with load."""

import tempfile
from pathlib import Path

import torch.nn as nn
from torch.utils.cpp_extension import load

folder = Path(tempfile.mkdtemp())
(folder / "relu.h").write_text("#pragma once\n#include <torch/extension.h>\ntorch::Tensor relu(torch::Tensor x);\n")
(folder / "relu_kernel.cu").write_text(r"""
#include "relu.h"
#include <c10/cuda/CUDAGuard.h>
__global__ void relu_kernel(const float* x, float* y, int64_t n) {
    int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], 0.f);
}
torch::Tensor relu(torch::Tensor x) {
    const at::cuda::OptionalCUDAGuard guard(device_of(x));
    auto y = at::empty_like(x);
    relu_kernel<<<(x.numel() + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
    return y;
}
""")
(folder / "relu.cpp").write_text(r"""
#include "relu.h"
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("relu", &relu); }
""")
extension = load("kb_cuda_load", [str(folder / "relu.cpp"), str(folder / "relu_kernel.cu")])


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.relu(x)
