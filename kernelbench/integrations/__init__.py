"""Adapters for evaluation frameworks, trainers and evolutionary search: one module each, none imported by the others.

Each turns what its framework asks into a call of ``kernelbench.reward`` and the answer into what its framework
expects. A fault of the machine is never a score: where a framework has a word for that, it is used, elsewhere
``kernelbench.EvaluationError`` passes through.
"""
