"""Solutions of problem 1/19 for the CPU, and what a model would say."""

GOOD = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x): return x.clamp(min=0)\n"
WRONG = GOOD.replace("clamp(min=0)", "neg()")
NO_CODE = "I would fuse the comparison with the store."
CONDITIONS = {"device": "cpu", "track": "open", "timeout_s": 60.0}


def answer(source):
    return f"Here is the kernel.\n\n```python\n{source}```\n"
