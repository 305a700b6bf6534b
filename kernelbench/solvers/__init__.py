"""Generation: what proposes candidates, and what evaluates them while others are being proposed.

A solver is a script of its own (``scripts/solvers/``, installed as ``kernelbench.solvers.strategies``). Here
is what it is given: the task, a client for language models, prompts, feedback; and what runs many of them at
once and can be killed at any moment: every answer and every result is on the disk before anybody uses it.
"""
