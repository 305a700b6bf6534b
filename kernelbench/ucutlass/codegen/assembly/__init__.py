"""From kernels to a header: stages, interfaces to C and PyTorch, and the source of a solution."""
