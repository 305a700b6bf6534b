"""Ampere and Ada: CUTLASS 2.x kernels."""
