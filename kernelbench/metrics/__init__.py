"""Figures over results: pure functions, no I/O."""
