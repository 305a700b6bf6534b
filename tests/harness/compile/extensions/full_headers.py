# kb: problem=1/19 device=cpu
"""Needs what only the real <ATen/ATen.h> declares (c10::List), so the second try builds it."""

import ctypes

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP = r"""
#include <ATen/ATen.h>

extern "C" void relu(float* x, float* y, int64_t n) {
    c10::List<at::Tensor> tensors({at::from_blob(x, {n}), at::from_blob(y, {n})});
    tensors.get(1).copy_(tensors.get(0).clamp_min(0));
}
"""

library = ctypes.CDLL(
    load_inline("kb_full_headers", CPP, no_implicit_headers=True, is_python_module=False, extra_cflags=["-O1"])
)


class ModelNew(nn.Module):
    def forward(self, x):
        y = x.new_empty(x.shape)
        pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (x, y)]
        library.relu(*pointers, ctypes.c_int64(x.numel()))
        return y
