"""The machine: what it has, what rates it reaches, and counters from Nsight Compute."""
