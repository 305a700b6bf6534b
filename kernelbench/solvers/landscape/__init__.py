"""The landscape: a seeded model of kernels, of the device that times them, and of the agents that write them.

Real strategies run on it unchanged: it stands behind the interfaces that a device and an endpoint stand behind
(``kernelbench.solvers.backend.interface``). A run of 40 attempts takes about 0.06 s of processor time.

- ``terrain``: a problem has a baseline, bounds, three resources and six levers with diminishing returns. A lever helps
  as far as its resource binds.
- ``author``: a model believes something of each lever, with an error that persists; it chooses by what it believes,
  and what it writes works with a chance that depends on lever, problem, model, errors shown and lessons told.
- ``reading``: an author knows only what its prompt shows.
- ``machine``: timing with noise, verdicts, counters. ``parameters``: every constant with its source.

What it can show: that a strategy, a schedule and the figures made of their logs do what they say, on thousands of runs
with known truth; how a mechanism (ranking, persistence, memory, early stopping) acts if agents are as described; how
much a conclusion hangs on one assumption, by changing that constant, ``insight`` or ``error``.

What it cannot show: that a strategy is better with real models on real devices. Which information mends which error by
how much, and how errors are spread, are assumptions (marked in ``parameters``). Authors are fitted to flat refinement
only. Profiles name a saturated resource truly, so assumption 1 of KernelBand is built in. Levers do not conflict with
each other, prompts have no length at which attention fails, nobody cheats, and the text of a prompt matters only by the
few things that ``reading`` looks for. Integrity labels and prompt wording cannot be studied here.

MANTIS over 200 seeds (``results/landscape``): the orchestrated form beats the flat loop; leaving out Analyze,
Summarize or the memory of other problems costs something. Leaving out Triage costs nothing that could be told from
chance, and this is why not here: an author names hypotheses in the order of the gain that it believes in, which is
also most of what ROI ranks by, and risks on a scale from 1 to 5 hardly tell a chance of 0.1 from one of 0.4.

References
----------
KernelBench (Ouyang et al., 2025); KernelBand (2025); the muCUTLASS paper (2026). Cited as [K], [B], [M].
"""
