"""The module that a golden file becomes: its sources, what is known of its shapes, and the adapter."""

from __future__ import annotations

import ast
import hashlib
from dataclasses import dataclass
from typing import Any

from harness.problem.module import ProblemId
from harness.solution.helper_files import NOT_PYTHON
from kernelbench.escaping import cut
from kernelbench.formats.tritonbench import adapter_source

# A number a shape, and the file's own test, which is checked and not timed.
TEMPLATE = '''"""{summary}"""

WORKLOADS = {workloads}
UNTIMED = ["test"]
KEEPS_DTYPES = True  # the perf file says which
OVERWRITES_INPUTS = True  # every input is an output too
DOMAIN = "published"  # the perf file draws what its function takes
RANDOM = "what the golden file draws, in its order"
ALLCLOSE = 1e-4  # execution accuracy

{adapter}

FUNCTIONS = {functions}  # what a solution defines in place of ModelNew
SHOWN = {golden}  # what a solver is shown

PROBLEM = Problem(
    {name},
    golden=SHOWN,
    perf={perf},
    test={test},
)
WORK = {work}  # FLOPs and bytes of each shape, by the perf file's own formulas


class Model(Operator):
    def __init__(self, shape):
        super().__init__(PROBLEM, PROBLEM.functions, shape)


def model_of(module):
    """The model of a candidate that defines the golden file's functions."""

    class ModelNew(Operator):
        def __init__(self, shape):
            super().__init__(PROBLEM, module, shape)

    return ModelNew


def get_inputs(shape=0):
    return PROBLEM.get_inputs(shape)


def get_init_inputs(shape=0):
    return [shape]


def get_flops(shape=0):
    return None if shape == TEST else WORK[shape][0]


def get_bytes(shape=0):
    return None if shape == TEST else WORK[shape][1]
'''
_SUMMARY_CHARACTERS = 100


@dataclass(frozen=True)
class Entry:
    """One golden file and what a model is asked for; ``perf`` or ``golden`` is empty where the file is missing."""

    id: ProblemId
    name: str
    instructions: tuple[str, ...]  # the short one, and the long one; '' where there is none
    golden: str
    test: str
    perf: str

    @property
    def key(self) -> str:
        """Digest of what its facts and its module are made of."""
        parts = (self.name, self.golden, self.test, self.perf, adapter_source.text(), TEMPLATE)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def module(entry: Entry, facts: dict[str, Any]) -> str:
    """Return the source of the problem; ``facts`` are those of ``inspection.facts``."""
    sizes = {str(index): {"shape": index} for index in range(len(facts["work"]))}
    return TEMPLATE.format(
        summary=_summary(entry.instructions[0]),
        workloads=repr(sizes | {"test": {"shape": "test"}}),
        adapter=adapter_source.text(),
        functions=repr(functions_of(entry)),
        name=repr(entry.name), golden=repr(entry.golden), perf=repr(entry.perf), test=repr(entry.test),
        work=repr([tuple(pair) for pair in facts["work"]]),
    )  # fmt: skip


def functions_of(entry: Entry) -> list[str]:
    """Return the names that the perf file imports from the golden file; [] where it is no Python."""
    try:
        body = ast.parse(entry.perf).body
    except NOT_PYTHON:
        return []
    imports = (node for node in body if isinstance(node, ast.ImportFrom) and node.module)
    return [name.name for node in imports if node.module.endswith(f".{entry.name}") for name in node.names]


def _summary(instruction: str) -> str:
    """The first sentence of what a model is asked for, as far as it fits a line."""
    line = " ".join(instruction.split()).replace("\\", "").replace('"', "'")
    sentence = line.partition(". ")[0]
    return cut(sentence, _SUMMARY_CHARACTERS)
