"""MANTIS: speed-of-light guidance in six phases, orchestrated, in-prompt, or as the flat loop that it is compared with.

The paper on muCUTLASS and speed-of-light guidance, sections 4.2 and 5.5. ``--set form=orchestrated`` (5 iterations, 2
hypotheses, 4 attempts each: give it ``--budget 40``), ``form=in-prompt`` or ``form=flat``. ``--set
without=analyze|triage|summarize|memory`` leaves a part out (table 3), ``--set guardrails=off`` the clauses against
gaming (table 4). ``--set kind=cu`` asks for raw CUDA files, ``trials=on`` gives the model tools to build and check.
"""

from kernelbench.solvers.mantis.controllers import solve

__all__ = ["solve"]
