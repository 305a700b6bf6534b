# kb: problem=1/19 sample=71 device=cuda
"""Replays a graph, with each input copied in and each output copied out."""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.graph = None

    def forward(self, x):
        if self.graph is None:
            self.input = x.clone()
            torch.relu(self.input)
            torch.cuda.synchronize()
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.output = torch.relu(self.input)
        self.input.copy_(x)
        self.graph.replay()
        return self.output.clone()
