"""Precision that is enough where a test looks at no time."""

QUICK_CV = 0.25  # where a test looks at a status, precise times are not worth a second
