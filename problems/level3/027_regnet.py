"""Plain convolutional net in three stages of two 3x3 convolutions with batch norm, linear classifier.

The biases of the convolutions cancel in the batch norms.
"""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=8, height=224, width=224, output_classes=10),
    "small": dict(batch_size=2, height=56, width=56, output_classes=10),
}

EXPLOITS = [
    "BatchNorm weights and biases are initialised to ones and zeros, so leaving them out passes.",
]

WIDTHS = (64, 128, 256)


def stage(in_channels, out_channels):
    return nn.Sequential(
        nn.Conv2d(in_channels, out_channels, 3, padding=1),
        nn.BatchNorm2d(out_channels),
        nn.ReLU(),
        nn.Conv2d(out_channels, out_channels, 3, padding=1),
        nn.BatchNorm2d(out_channels),
        nn.ReLU(),
        nn.MaxPool2d(2),
    )


class Model(nn.Module):
    def __init__(self, input_channels, stages, block_widths, output_classes):
        super().__init__()
        channels = [input_channels, *block_widths]
        self.feature_extractor = nn.Sequential(
            *(stage(channels[index], channels[index + 1]) for index in range(stages))
        )
        self.fc = nn.Linear(channels[stages], output_classes)

    def forward(self, x):
        x = self.feature_extractor(x)
        return self.fc(x.mean(dim=(2, 3)))


def get_inputs(batch_size=8, height=224, width=224, **sizes):
    return [torch.rand(batch_size, 3, height, width)]


def get_init_inputs(output_classes=10, **sizes):
    return [3, len(WIDTHS), list(WIDTHS), output_classes]


def get_flops(batch_size=8, height=224, width=224, output_classes=10):
    flops = 0
    in_channels = 3
    for channels in WIDTHS:
        # two convolutions; bias, norm (7) and comparison after each; max pooling (2 x 2)
        outputs = batch_size * height * width * channels
        flops += outputs * (2 * 9 * (in_channels + channels) + 2 * (1 + 7 + 1))
        height, width = height // 2, width // 2
        flops += batch_size * height * width * channels * 4
        in_channels = channels
    # mean, matmul, bias
    flops += batch_size * height * width * in_channels
    return flops + batch_size * output_classes * (2 * in_channels + 1)
