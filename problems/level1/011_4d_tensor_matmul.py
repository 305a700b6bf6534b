"""Four-dimensional tensor times matrix, over the last dimension of the tensor."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=8, height=256, width=512, in_features=256, out_features=768),
    "small": dict(batch_size=2, height=16, width=24, in_features=64, out_features=96),
    "vision": dict(batch_size=127, height=28, width=28, in_features=192, out_features=768),
}


class Model(nn.Module):
    def forward(self, A, B):
        return torch.einsum("bijl,lk->bijk", A, B)


def get_inputs(batch_size=8, height=256, width=512, in_features=256, out_features=768):
    return [torch.rand(batch_size, height, width, in_features), torch.rand(in_features, out_features)]


def get_init_inputs(**sizes):
    return []


def get_flops(batch_size=8, height=256, width=512, in_features=256, out_features=768):
    return 2 * batch_size * height * width * in_features * out_features
