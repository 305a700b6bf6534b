# kb: problem=1/19
"""Inline CUDA that calls torch::nn::functional, which only the real headers declare."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <torch/extension.h>

torch::Tensor relu(torch::Tensor x) { return torch::nn::functional::relu(x); }
"""

extension = load_inline("kb_cuda_full", "torch::Tensor relu(torch::Tensor x);", CUDA, functions=["relu"])


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.relu(x)
