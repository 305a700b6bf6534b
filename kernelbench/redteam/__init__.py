"""The red team: for every way to cheat a program that does, and an honest one that looks alike.

``exploits/`` and ``honest/`` hold solutions as anybody would hand them in, named
after their class in ``catalogue``. They live in the package, and not among the
tests, because `kb redteam` runs them wherever kernelbench is installed.
"""
