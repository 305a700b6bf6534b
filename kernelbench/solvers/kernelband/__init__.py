"""KernelBand: kernel optimisation as a hierarchical bandit over clusters of kernels and strategies, with masks.

- ``strategies``: the six strategies and the resource that each relieves
- ``settings``: every constant, and every point that the paper leaves open, as an option
- ``bandit``: arms, masks, UCB, rewards and the choice of a kernel; ``clusters``: k-means and representatives. Pure.
- ``features``: what is known of a kernel, from its result and its profile
- ``search``: the loop over a task
- ``statistics``, ``report``: frequency, success and best of each strategy, regret, time, and tables of runs

References
----------
KernelBand: Steering LLM-based Kernel Optimization via Hardware-Aware Multi-Armed Bandits (2025), algorithm 1.
"""
