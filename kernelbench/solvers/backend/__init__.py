"""Measuring of candidates: the interface that a task uses, and the machine behind it."""
