"""Linear layer, norm of each row (instance norm of one channel), addition of y, product with y."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=1024, in_features=8192, out_features=8192),
    "small": dict(batch_size=64, in_features=256, out_features=256),
    "llm": dict(batch_size=2000, in_features=4096, out_features=11008),
}


class Model(nn.Module):
    def __init__(self, in_features, out_features, eps=1e-5, momentum=0.1):
        super().__init__()
        self.bmm = nn.Linear(in_features, out_features)
        self.instance_norm = nn.InstanceNorm2d(1, eps=eps, momentum=momentum)

    def forward(self, x, y):
        x = self.bmm(x)
        x = self.instance_norm(x[:, None, None, :])[:, 0, 0, :]
        x = x + y
        return x * y


def get_inputs(batch_size=1024, in_features=8192, out_features=8192):
    return [torch.rand(batch_size, in_features), torch.rand(batch_size, out_features)]


def get_init_inputs(in_features=8192, out_features=8192, **sizes):
    return [in_features, out_features]


def get_flops(batch_size=1024, in_features=8192, out_features=8192):
    # matmul; per output: bias, instance norm (5), addition, product
    return 2 * batch_size * in_features * out_features + 8 * batch_size * out_features
