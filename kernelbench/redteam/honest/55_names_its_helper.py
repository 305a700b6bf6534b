# kb: problem=1/19 sample=551
"""Reads a file beside it, which it names: its own source."""

from pathlib import Path

import torch

_limit = float(Path(__file__).with_name("55_names_its_helper.py").read_text().startswith("nothing like it"))


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x.clamp(min=_limit)
