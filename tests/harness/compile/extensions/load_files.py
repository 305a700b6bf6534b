# kb: problem=1/19 device=cpu
"""Two files and a header of its own, built with load, with flags that decide the result."""

import os
import tempfile
from pathlib import Path

import torch.nn as nn
from torch.utils import cpp_extension

folder = Path(tempfile.mkdtemp())
(folder / "include").mkdir()
(folder / "include" / "relu.h").write_text(
    "#include <torch/types.h>\nvoid relu_into(const torch::Tensor& x, torch::Tensor& y);\n"
)
(folder / "relu.cpp").write_text(r"""
#include "relu.h"
void relu_into(const torch::Tensor& x, torch::Tensor& y) {
    const float* in = x.data_ptr<float>();
    float* out = y.data_ptr<float>();
    for (int64_t i = 0; i < x.numel(); i++) out[i] = std::max(in[i], FLOOR);
}
""")
(folder / "binding.cpp").write_text(r"""
#include <torch/extension.h>
#include "relu.h"
torch::Tensor relu(torch::Tensor x) {
    TORCH_CHECK(x.is_contiguous(), "x must be contiguous");
    auto y = torch::empty_like(x);
    relu_into(x, y);
    return y;
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("relu", &relu, "ReLU", py::arg("x")); }
""")
os.chdir(folder)  # relative paths are relative to where the candidate is
extension = cpp_extension.load(
    name="kb_load_files",
    sources=["relu.cpp", "binding.cpp"],
    extra_cflags=["-O2", "-DFLOOR=0.0f"],
    extra_include_paths=["include"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.relu(x=x)
