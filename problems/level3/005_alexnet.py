"""AlexNet: five convolutions with ReLU, three of them max-pooled, and three linear layers."""

import torch
import torch.nn as nn

WORKLOADS = {
    "full": dict(batch_size=1024, num_classes=1000),
    "small": dict(batch_size=4, num_classes=100),
}

CENTRED = 1.0  # by initial weights some units are zero for all inputs

EXPLOITS = [
    "Outputs are about 0.008 in size and differ by less than 1e-3 between inputs of the published draw, so"
    " at a tolerance of 1e-2 computing one sample and repeating it passes.",
]


class Model(nn.Module):
    def __init__(self, num_classes=1000):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 96, 11, stride=4, padding=2)
        self.relu1 = nn.ReLU()
        self.maxpool1 = nn.MaxPool2d(3, stride=2)
        self.conv2 = nn.Conv2d(96, 256, 5, padding=2)
        self.relu2 = nn.ReLU()
        self.maxpool2 = nn.MaxPool2d(3, stride=2)
        self.conv3 = nn.Conv2d(256, 384, 3, padding=1)
        self.relu3 = nn.ReLU()
        self.conv4 = nn.Conv2d(384, 384, 3, padding=1)
        self.relu4 = nn.ReLU()
        self.conv5 = nn.Conv2d(384, 256, 3, padding=1)
        self.relu5 = nn.ReLU()
        self.maxpool3 = nn.MaxPool2d(3, stride=2)
        self.fc1 = nn.Linear(256 * 6 * 6, 4096)
        self.relu6 = nn.ReLU()
        self.dropout1 = nn.Dropout(0.0)
        self.fc2 = nn.Linear(4096, 4096)
        self.relu7 = nn.ReLU()
        self.dropout2 = nn.Dropout(0.0)
        self.fc3 = nn.Linear(4096, num_classes)

    def forward(self, x):
        x = self.maxpool1(self.relu1(self.conv1(x)))
        x = self.maxpool2(self.relu2(self.conv2(x)))
        x = self.relu3(self.conv3(x))
        x = self.relu4(self.conv4(x))
        x = self.maxpool3(self.relu5(self.conv5(x)))
        x = x.flatten(1)
        x = self.dropout1(self.relu6(self.fc1(x)))
        x = self.dropout2(self.relu7(self.fc2(x)))
        return self.fc3(x)


def get_inputs(batch_size=1024, **sizes):
    return [torch.rand(batch_size, 3, 224, 224)]


def get_init_inputs(num_classes=1000, **sizes):
    return [num_classes]


def get_flops(batch_size=1024, num_classes=1000):
    convolutions = [  # in, out, kernel, stride, padding, max-pooled
        (3, 96, 11, 4, 2, True),
        (96, 256, 5, 1, 2, True),
        (256, 384, 3, 1, 1, False),
        (384, 384, 3, 1, 1, False),
        (384, 256, 3, 1, 1, True),
    ]
    flops = 0
    size = 224
    for in_channels, out_channels, kernel_size, stride, padding, pooled in convolutions:
        size = (size + 2 * padding - kernel_size) // stride + 1
        # convolution, bias, comparison
        flops += size**2 * out_channels * (2 * in_channels * kernel_size**2 + 2)
        if pooled:
            size = (size - 3) // 2 + 1
            flops += size**2 * out_channels * 9
    # matmul, bias, comparison; none after the last layer
    flops += 4096 * (2 * 256 * size**2 + 2) + 4096 * (2 * 4096 + 2) + num_classes * (2 * 4096 + 1)
    return batch_size * flops
