# kb: problem=1/19
"""Two CUDA sources, which load_inline joins, two C++ sources, and a dispatch over types."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

KERNEL = r"""
template <typename T>
__global__ void relu_kernel(const T* x, T* y, int64_t n) {
    int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
    if (i < n) y[i] = x[i] > T(0) ? x[i] : T(0);
}
"""
LAUNCH = r"""
torch::Tensor relu_cuda(const torch::Tensor& x) {
    auto y = torch::empty_like(x);
    AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "relu", [&] {
        relu_kernel<scalar_t><<<(x.numel() + 255) / 256, 256>>>(
            x.const_data_ptr<scalar_t>(), y.mutable_data_ptr<scalar_t>(), x.numel());
    });
    return y;
}
"""
DECLARATION = "torch::Tensor relu_cuda(const torch::Tensor& x);"
CHECKED = r"""
torch::Tensor relu(torch::Tensor x) {
    TORCH_CHECK(x.is_cuda() && x.is_contiguous(), "x must be a contiguous CUDA tensor");
    return relu_cuda(x);
}
"""

extension = load_inline("kb_several", [DECLARATION, CHECKED], [KERNEL, LAUNCH], functions={"relu": "ReLU"})


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.relu(x)
