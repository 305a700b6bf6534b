"""Experiments: a matrix of solvers, settings, problems, seeds and repeats, run as one, with one report."""
