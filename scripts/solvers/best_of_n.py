"""As many independent answers as there are attempts, to the same prompt, at a temperature that makes them differ.

Repeated sampling of KernelBench (2025), section 5.1.1. ``--set temperature=1.6`` is what it took for
DeepSeek-V3, 0.7 (the default here) for Llama 3.1.
"""


def solve(task):
    temperature = float(task.option("temperature", "0.7"))
    yield from task.llm.samples(task.prompt(), task.budget, temperature=temperature)
