# kb: problem=1/19 sample=52
"""Tries two ways in its first calls and stays with the quicker one."""

import time

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.ways = (torch.relu, lambda x: x.clamp(min=0))
        self.seconds = []

    def forward(self, x):
        if len(self.seconds) == len(self.ways):
            return self.ways[self.seconds.index(min(self.seconds))](x)
        begin = time.perf_counter()
        result = self.ways[len(self.seconds)](x)
        self.seconds.append(time.perf_counter() - begin)
        return result
