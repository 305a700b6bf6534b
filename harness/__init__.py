"""The engine: turns one (problem, solution) pair into one result that can be trusted.

Read in this order to follow one evaluation: ``problem`` and ``solution`` say
what is asked and what is offered, ``build`` compiles, ``worker`` runs the
candidate in a process of its own, ``judge`` checks and times it from outside,
``result`` is what comes out.
"""
