# kb: problem=1/1 sample=161
"""Lets two threads compute, and waits for them."""

import threading

import torch


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        result, half = a.new_empty(a.shape[0], b.shape[1]), a.shape[0] // 2
        other = threading.Thread(target=torch.matmul, args=(a[half:], b), kwargs={"out": result[half:]})
        other.start()
        torch.matmul(a[:half], b, out=result[:half])
        other.join()
        return result
