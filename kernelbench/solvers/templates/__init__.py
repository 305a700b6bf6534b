"""Kernels without a model: what a reference computes as a formula, and templates that compute formulas.

``recognition.py`` reads a traced reference as one pass of elementwise operators and reductions, or as a matrix
product; ``formula.py`` is what it found, with C from ``expressions.py`` and places from ``patterns.py``; ``plans.py``
says which templates fit it, and with which parameters; ``*.cu`` and ``*.cpp`` are the templates.
"""
