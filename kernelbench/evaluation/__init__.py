"""Evaluation of a directory of solutions: executors, judge processes, baselines."""
