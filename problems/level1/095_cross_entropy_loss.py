"""Cross entropy of logits against class indices, averaged over the batch."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=32768, num_classes=4096),
    "small": dict(batch_size=256, num_classes=512),
    "llm": dict(batch_size=4096, num_classes=32003),
}

DOMAIN = {"predictions": "logits", "targets": "index"}

EXPLOITS = [
    "With logits uniform on [0, 1) the loss is log(num_classes) + 0.04 for every seed, to about 2e-4 relative.",
]


class Model(nn.Module):
    def forward(self, predictions, targets):
        return F.cross_entropy(predictions, targets)


def get_inputs(batch_size=32768, num_classes=4096):
    return [torch.rand(batch_size, num_classes), torch.randint(0, num_classes, (batch_size,))]


def get_init_inputs(**sizes):
    return []


def get_flops(batch_size=32768, num_classes=4096):
    # per logit: log-softmax (5); per row: sum over the batch
    return 5 * batch_size * num_classes + batch_size
