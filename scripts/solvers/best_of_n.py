"""Independent answers to the same prompt, as many as there are attempts, at a temperature that varies them.

Repeated sampling of KernelBench (2025), section 5.1.1. ``--set temperature=1.6`` is what it took for
DeepSeek-V3, 0.7 (the default here) for Llama 3.1.
"""


def solve(task):
    temperature = float(task.option("temperature", "0.7"))
    yield from task.llm.samples(task.prompt(), task.budget, temperature=temperature)
