"""Kernels without a model: what a reference computes as a formula, and templates that compute formulas.

``formula.py`` reads a traced reference as one pass of elementwise operators and reductions, or as a matrix
product; ``plans.py`` says which templates fit it, and with which parameters; ``*.cu`` and ``*.cpp`` are the templates.
"""
