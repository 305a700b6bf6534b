"""U-Net of four levels whose activations are softmaxes over the width."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = {
    "full": dict(batch_size=8, in_channels=8, out_channels=4, features=64, height=64, width=512),
    "small": dict(batch_size=2, in_channels=8, out_channels=4, features=8, height=32, width=64),
}

EXPLOITS = [
    "Weights and biases of the batch norms are initialised to ones and zeros, so leaving them out passes.",
]


class DoubleConv(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.double_conv = nn.Sequential(
            nn.Conv2d(in_channels, out_channels, kernel_size=3, padding=1),
            nn.BatchNorm2d(out_channels),
            nn.Softmax(dim=-1),
            nn.Conv2d(out_channels, out_channels, kernel_size=3, padding=1),
            nn.BatchNorm2d(out_channels),
            nn.Softmax(dim=-1),
        )

    def forward(self, x):
        return self.double_conv(x)


def upsample(in_channels, out_channels):
    return nn.ConvTranspose2d(in_channels, out_channels, kernel_size=2, stride=2)


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, features):
        super().__init__()
        self.encoder1 = DoubleConv(in_channels, features)
        self.encoder2 = DoubleConv(features, 2 * features)
        self.encoder3 = DoubleConv(2 * features, 4 * features)
        self.encoder4 = DoubleConv(4 * features, 8 * features)
        self.bottleneck = DoubleConv(8 * features, 16 * features)
        self.upconv4 = upsample(16 * features, 8 * features)
        self.decoder4 = DoubleConv(16 * features, 8 * features)
        self.upconv3 = upsample(8 * features, 4 * features)
        self.decoder3 = DoubleConv(8 * features, 4 * features)
        self.upconv2 = upsample(4 * features, 2 * features)
        self.decoder2 = DoubleConv(4 * features, 2 * features)
        self.upconv1 = upsample(2 * features, features)
        self.decoder1 = DoubleConv(2 * features, features)
        self.final_conv = nn.Conv2d(features, out_channels, kernel_size=1)

    def forward(self, x):
        level1 = self.encoder1(x)
        level2 = self.encoder2(F.max_pool2d(level1, 2))
        level3 = self.encoder3(F.max_pool2d(level2, 2))
        level4 = self.encoder4(F.max_pool2d(level3, 2))
        x = self.bottleneck(F.max_pool2d(level4, 2))
        x = self.decoder4(torch.cat([self.upconv4(x), level4], dim=1))
        x = self.decoder3(torch.cat([self.upconv3(x), level3], dim=1))
        x = self.decoder2(torch.cat([self.upconv2(x), level2], dim=1))
        x = self.decoder1(torch.cat([self.upconv1(x), level1], dim=1))
        return self.final_conv(x)


def get_inputs(batch_size=8, in_channels=8, height=64, width=512, **sizes):
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs(in_channels=8, out_channels=4, features=64, **sizes):
    return [in_channels, out_channels, features]


def get_flops(batch_size=8, in_channels=8, out_channels=4, features=64, height=64, width=512):
    def double_conv(in_channels, out_channels, positions):
        # two 3 x 3 convolutions; per output of each: bias, norm (7), softmax (5)
        return positions * out_channels * (2 * 9 * (in_channels + out_channels) + 2 * 13)

    positions = batch_size * height * width
    # final 1 x 1 convolution with bias
    total = positions * out_channels * (2 * features + 1)
    for level in range(4):
        channels = features * 2**level
        total += double_conv(channels // 2 if level else in_channels, channels, positions)
        # pooling: 4 an output, at a quarter of the positions
        total += positions * channels
        # transposed convolution: each output sees one of the 2 x 2 taps; bias
        total += positions * channels * (2 * 2 * channels + 1)
        total += double_conv(2 * channels, channels, positions)
        positions //= 4
    return total + double_conv(8 * features, 16 * features, positions)
