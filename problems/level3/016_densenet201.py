"""DenseNet-201 without bottlenecks: stem, four dense blocks with transitions, linear classifier."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=10, height=224, width=224, growth_rate=32, num_classes=10),
    "small": dict(batch_size=4, height=64, width=64, growth_rate=32, num_classes=10),
}

EXPLOITS = [
    "BatchNorm weights and biases are initialised to ones and zeros, so leaving them out passes.",
]

LAYERS = (6, 12, 48, 32)  # of the dense blocks


class DenseBlock(nn.Module):
    def __init__(self, num_layers, num_input_features, growth_rate):
        super().__init__()
        self.layers = nn.ModuleList()
        for index in range(num_layers):
            channels = num_input_features + index * growth_rate
            self.layers.append(
                nn.Sequential(
                    nn.BatchNorm2d(channels),
                    nn.ReLU(),
                    nn.Conv2d(channels, growth_rate, 3, padding=1, bias=False),
                    nn.Dropout(0.0),
                )
            )

    def forward(self, x):
        features = [x]
        for layer in self.layers:
            features.append(layer(x))
            x = torch.cat(features, dim=1)
        return x


class TransitionLayer(nn.Module):
    def __init__(self, num_input_features, num_output_features):
        super().__init__()
        self.transition = nn.Sequential(
            nn.BatchNorm2d(num_input_features),
            nn.ReLU(),
            nn.Conv2d(num_input_features, num_output_features, 1, bias=False),
            nn.AvgPool2d(2),
        )

    def forward(self, x):
        return self.transition(x)


class Model(nn.Module):
    def __init__(self, growth_rate=32, num_classes=1000):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False),
            nn.BatchNorm2d(64),
            nn.ReLU(),
            nn.MaxPool2d(3, stride=2, padding=1),
        )
        self.dense_blocks = nn.ModuleList()
        self.transition_layers = nn.ModuleList()
        channels = 64
        for index, num_layers in enumerate(LAYERS):
            self.dense_blocks.append(DenseBlock(num_layers, channels, growth_rate))
            channels += num_layers * growth_rate
            if index < len(LAYERS) - 1:
                self.transition_layers.append(TransitionLayer(channels, channels // 2))
                channels //= 2
        self.final_bn = nn.BatchNorm2d(channels)
        self.classifier = nn.Linear(channels, num_classes)

    def forward(self, x):
        x = self.features(x)
        for block, transition in zip(self.dense_blocks, self.transition_layers):
            x = transition(block(x))
        x = self.dense_blocks[-1](x)
        x = F.relu(self.final_bn(x))
        x = F.adaptive_avg_pool2d(x, 1).flatten(1)
        return self.classifier(x)


def get_inputs(batch_size=10, height=224, width=224, **sizes):
    return [torch.rand(batch_size, 3, height, width)]


def get_init_inputs(growth_rate=32, num_classes=10, **sizes):
    return [growth_rate, num_classes]


def get_flops(batch_size=10, height=224, width=224, growth_rate=32, num_classes=10):
    # stem: convolution, norm (7), comparison; max pooling (3 x 3); both round up
    height, width = (height + 1) // 2, (width + 1) // 2
    flops = batch_size * height * width * 64 * (2 * 3 * 7**2 + 8)
    height, width = (height + 1) // 2, (width + 1) // 2
    flops += batch_size * height * width * 64 * 9
    channels = 64
    for index, num_layers in enumerate(LAYERS):
        for _ in range(num_layers):
            # per input channel: norm, comparison, taps of the convolution
            flops += batch_size * height * width * channels * (8 + 2 * 9 * growth_rate)
            channels += growth_rate
        if index < len(LAYERS) - 1:
            # the same for a transition; average pooling (2 x 2)
            flops += batch_size * height * width * channels * (8 + 2 * (channels // 2))
            height, width, channels = height // 2, width // 2, channels // 2
            flops += batch_size * height * width * channels * 4
    # norm, comparison, mean; matmul, bias
    flops += batch_size * height * width * channels * 9
    return flops + batch_size * num_classes * (2 * channels + 1)
