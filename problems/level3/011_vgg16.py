"""VGG-16: thirteen 3x3 convolutions with ReLU in five max-pooled stages, three linear layers."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=10, num_classes=1000),
    "small": dict(batch_size=2, num_classes=100),
}

CENTRED = 1.0  # by initial weights some units are zero for all inputs

EXPLOITS = [
    "The default init shrinks the signal but not the biases: outputs of different inputs differ by less"
    " than 2e-5, so computing one sample and repeating it passes.",
]

STAGES = [(64, 2), (128, 2), (256, 3), (512, 3), (512, 3)]  # channels, convolutions


class Model(nn.Module):
    def __init__(self, num_classes=1000):
        super().__init__()
        features = []
        in_channels = 3
        for channels, convolutions in STAGES:
            for _ in range(convolutions):
                features += [nn.Conv2d(in_channels, channels, 3, padding=1), nn.ReLU()]
                in_channels = channels
            features.append(nn.MaxPool2d(2))
        self.features = nn.Sequential(*features)
        self.classifier = nn.Sequential(
            nn.Linear(512 * 7 * 7, 4096),
            nn.ReLU(),
            nn.Dropout(0.0),
            nn.Linear(4096, 4096),
            nn.ReLU(),
            nn.Dropout(0.0),
            nn.Linear(4096, num_classes),
        )

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


def get_inputs(batch_size=10, **sizes):
    return [torch.rand(batch_size, 3, 224, 224)]


def get_init_inputs(num_classes=1000, **sizes):
    return [num_classes]


def get_flops(batch_size=10, num_classes=1000):
    flops = 0
    size = 224
    in_channels = 3
    for channels, convolutions in STAGES:
        taps = 9 * (in_channels + (convolutions - 1) * channels)
        # convolutions; bias and comparison after each
        flops += size**2 * channels * (2 * taps + 2 * convolutions)
        size = size // 2
        flops += size**2 * channels * 4  # max pooling
        in_channels = channels
    # matmul, bias, comparison; none after the last layer
    flops += 4096 * (2 * 512 * size**2 + 2) + 4096 * (2 * 4096 + 2) + num_classes * (2 * 4096 + 1)
    return batch_size * flops
