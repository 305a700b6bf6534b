"""One answer a problem: the task and an in-context example, decoded greedily.

The baseline of KernelBench (Ouyang et al., 2025, section 4.1). Give it ``--budget 1``; with
``--set context=few_shot,hardware,sol`` it is the ones of section 5.2, with our speed-of-light report as a third.
``--set hardware=a100-sxm`` asks for a kernel for that GPU of ``harness.sol.hardware``, at hand or not.
"""


def solve(task):
    yield task.llm.ask(task.prompt(), temperature=0)
