"""Plans: templates that fit a problem, parameters to search, and the source for a choice.

Values of a parameter are in the order in which they are worth trying: the first ones together are the default.
A source is made for one workload: its sizes are constants, and with others it leaves the output alone.
"""

from __future__ import annotations

import itertools
import math
import string
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.problem.signature import Signature
from kernelbench.solvers.templates.formula import Formula, Product
from kernelbench.solvers.templates.patterns import NoTemplate
from kernelbench.solvers.templates.recognition import recognise

_FOLDER = Path(__file__).parent
_KEPT_FLOATS = 64  # of a thread's registers, for what is read once; fewer where it can only have 64
_KEPT_FLOATS_OF_1024 = 40
_SHORT_INDEX = 3 << 30  # space left above for positions beyond the end
_FEW_ROWS = 4  # for each multiprocessor; with fewer, several blocks share a row
_MAX_PARTIALS = 1 << 16

Choice = dict[str, int]


@dataclass(frozen=True)
class Plan:
    """One template for one problem, with the values that its parameters may take."""

    template: str  # file name
    computed: Formula | Product
    signature: Signature
    problem: str
    space: dict[str, list[int]]

    @property
    def kind(self) -> str:
        return self.template.rpartition(".")[2]

    @property
    def default(self) -> Choice:
        """The first choice that goes together."""
        return next(
            choice for choice in map(self._choice, itertools.product(*self.space.values())) if self.fits(choice)
        )

    def _choice(self, values: tuple[int, ...]) -> Choice:
        return dict(zip(self.space, values))

    def fits(self, choice: Choice) -> bool:
        """Return whether a block can have as many threads, registers and bytes of shared memory as it takes."""
        if isinstance(self.computed, Product):
            threads = choice["high"] // choice["rows"] * (choice["wide"] // choice["columns"])
            shared = choice["depth"] * (choice["high"] + choice["wide"] + 2) * 4
            return 32 <= threads <= 1024 and shared <= 48 << 10
        threads = choice.get("threads") or choice.get("wide", 1) * choice.get("high", 1)
        a_row = choice.get("threads") or choice.get("high", 1)  # threads that share a row
        kept = math.ceil(self.computed.length / a_row) * max(1, len(self.computed.loads))
        room = _KEPT_FLOATS if threads <= 512 else _KEPT_FLOATS_OF_1024
        return threads <= 1024 and not (choice.get("cache") and kept > room)

    def neighbours(self, choice: Choice) -> Iterator[Choice]:
        """Choices that differ in one parameter and go together, the nearest values of all parameters first."""
        steps = itertools.product((1, -1, 2, -2, 3, -3), self.space.items())
        for step, (name, values) in steps:
            index = values.index(choice[name]) + step
            if 0 <= index < len(values) and self.fits(neighbour := {**choice, name: values[index]}):
                yield neighbour

    def source(self, choice: Choice) -> str:
        """The solution with these parameters."""
        if isinstance(self.computed, Product):
            values = _product_values(self.computed, choice)
        else:
            values = _formula_values(self.template, self.computed, choice)
        values |= {
            "declaration": self.signature.declaration(),
            "guard": _guard(self.signature),
            "arguments": ", ".join(_c_name(self.signature, load.argument) for load in _loads(self.computed)),
        }
        head = f"// kb: problem={self.problem}\n// {self.template}: {_described(choice)}\n"
        return head + string.Template((_FOLDER / self.template).read_text()).substitute(values)


def fitting(task) -> list[Plan]:
    """The plans for a task, the most promising first; NoTemplate where there is none."""
    if task.precision != "fp32":
        raise NoTemplate("the templates are for FP32")
    computed = recognise(task.trace)
    if task.device["type"] == "cpu":
        spaces = _host(computed)
    elif isinstance(computed, Product):
        spaces = {"matmul.cu": _matmul_space()}
    else:
        spaces = _spaces(computed, task.device["multiprocessors"])
    return [Plan(template, computed, task.signature, task.id, space) for template, space in spaces.items()]


def _host(computed: Formula | Product) -> dict[str, dict[str, list[int]]]:
    if isinstance(computed, Product):
        raise NoTemplate("the templates have no matrix product for a CPU")
    fixed = {"tile": [1], "chunks": [1], "unroll": [1], "grain": [0]}
    if not computed.reductions:
        return {"loops.cpp": fixed | {"lanes": [8, 4, 16], "grain": [0, 4096, 16384, 1024, 65536], "team": [0, 1]}}
    few = computed.outer * computed.inner <= _FEW_ROWS
    space = fixed | {"lanes": [1, 4, 8, 16], "unroll": [1, 4, 8], "team": [0, 1]}
    if computed.inner > 1:
        return {"loops.cpp": space | {"tile": [16, 64, 256, 8]}}
    return {"loops.cpp": space | {"chunks": [64, 16, 256, 1] if few else [1, 4]}}


def _spaces(formula: Formula, multiprocessors: int) -> dict[str, dict[str, list[int]]]:
    vectors = [v for v in (4, 2, 1) if formula.length % v == 0]
    loads = max(1, len(formula.loads))
    if not formula.reductions:
        return {"map.cu": {"threads": [256, 512, 1024, 128], "items": [2, 4, 1, 8], "vec": vectors}}
    if formula.inner > 1:
        cached = formula.level == "element" and formula.length * loads <= 16 * _KEPT_FLOATS
        return {
            "columns.cu": {
                "wide": [64, 32, 128, 256],
                "high": [8, 4, 16, 2, 1],
                "cache": [1, 0] if cached else [0],
                "unroll": [8, 4, 16],
            }
        }
    once = formula.level == "element" and formula.length * loads <= 512 * _KEPT_FLOATS
    threads = [512, 256, 1024, 128] if formula.length >= 4096 else [128, 256, 64, 32]
    rows = {"threads": threads, "vec": vectors, "cache": [1, 0] if once else [0], "unroll": [4, 2, 8]}
    few = formula.outer < _FEW_ROWS * multiprocessors
    if not few:
        return {"rows.cu": rows}
    blocks = [4, 8, 16, 2, 1]  # for each multiprocessor
    parts = [max(1, math.ceil(multiprocessors * each / formula.outer)) for each in blocks]
    parts = [part for part in dict.fromkeys(parts) if part * formula.outer <= _MAX_PARTIALS]
    split = {"threads": [256, 512, 1024, 128], "vec": vectors, "parts": parts, "unroll": [4, 2, 8]}
    return {"split.cu": split, "rows.cu": rows} if formula.outer > 1 else {"split.cu": split}


def _matmul_space() -> dict[str, list[int]]:
    return {"high": [128, 64, 256], "wide": [128, 64, 256], "depth": [8, 16, 4], "rows": [8, 4], "columns": [8, 4]}


def _loads(computed: Formula | Product) -> list:
    return [] if isinstance(computed, Product) else list(computed.loads.values())


def _product_values(product: Product, choice: Choice) -> dict[str, object]:
    (a, *a_strides), (b, *b_strides) = product.a, product.b
    names = ("batch", "row", "column")
    strides = {f"{matrix}_{name}": stride for matrix, values in (("a", a_strides), ("b", b_strides))
               for name, stride in zip(names, values)}  # fmt: skip
    sizes = {"m": product.m, "n": product.n, "k": product.k, "batch": product.batch}
    return {**choice, **strides, **sizes, "keep": product.keep, "a": a, "b": b}


def _formula_values(template: str, formula: Formula, choice: Choice) -> dict[str, object]:
    vec = choice.get("vec", 1)
    on_host = template.endswith(".cpp")
    values = {**choice, "row_output": f"row.{formula.output}" if formula.level != "element" else "0"}
    text = string.Template((_FOLDER / "formula.h").read_text()).substitute(_definitions(formula, vec, on_host))
    states = (_FOLDER / "states.h").read_text()
    values["header"] = (_FOLDER / "cuda.h").read_text() + "\n" + states
    values["states"] = states
    values["formula"] = text
    values |= {part: (_FOLDER / f"{part}.h").read_text() for part in ("block", "store")}
    values["loop"] = "rows" if formula.reductions else "map"
    return values


def _definitions(formula: Formula, vec: int, on_host: bool) -> dict[str, object]:
    """Return what fills ``formula.h``."""
    loads, reductions = formula.loads, formula.reductions
    before = [f"const float {name} = {text};" for name, text, needs_rows in formula.elements if not needs_rows]
    every = [f"const float {name} = {text};" for name, text, _ in formula.elements]
    rows = [f"const {c_type} {name} = {text};\n    row.{name} = {name};" for name, c_type, text in formula.rows]
    pushes = [f"s.{r.name}.push({r.element}, r);" for r in reductions]
    return {
        "index": "size_t" if on_host or formula.size > _SHORT_INDEX else "uint32_t",
        "output_type": formula.c_output,
        "size": formula.size,
        "outer": formula.outer,
        "length": formula.length,
        "inner": formula.inner,
        "vec": vec,
        "level": formula.level.upper(),
        "array_fields": " ".join(f"const {load.c_type}* {name};" for name, load in loads.items()),
        "element_fields": " ".join(f"{load.c_type} {name};" for name, load in loads.items()),
        "state_fields": " ".join(f"{r.state} {r.name};" for r in reductions),
        "row_fields": " ".join(f"{c_type} {name};" for name, c_type, _ in formula.rows),
        "clear": " ".join(f"{r.name}.clear();" for r in reductions),
        "merge": " ".join(f"{r.name}.merge(o.{r.name});" for r in reductions),
        "load": ", ".join(f"a.{name}[{load.index()}]" for name, load in loads.items()),
        "load_vector": "\n".join(_load_vector(name, load, vec) for name, load in loads.items()),
        "push": _block(before + pushes),
        "finish": _block(rows),
        "result": _block([*every, f"return {formula.output};"] if formula.level == "element" else ["return 0;"]),
    }


def _load_vector(name, load, vec: int) -> str:
    if load.contiguous(vec):
        pack = f"const Pack<{load.c_type}> {name} = *(const Pack<{load.c_type}>*)(a.{name} + ({load.index()}));"
        return _block([pack, f"for (int k = 0; k < VEC; k++) e[k].{name} = {name}.v[k];"])
    return _block([f"for (int k = 0; k < VEC; k++) e[k].{name} = a.{name}[{load.index('(at + k)')}];"])


def _block(lines: list[str]) -> str:
    return "\n".join(f"    {line}" for line in lines)


def _guard(signature: Signature) -> str:
    """Sizes are constants; a workload of others must not be answered with memory that is not ours."""
    sizes = [s for s in signature.scalars if not isinstance(s.value, (bool, float))]
    if not sizes:
        return ""
    return f"    if ({' || '.join(f'{s.name} != {s.value}' for s in sizes)}) return;  // made for these sizes"


def _c_name(signature: Signature, argument: str) -> str:
    """The C identifier of an input or a parameter, whose name in the state dict may have dots."""
    names = {spec.name for spec in (*signature.inputs, *signature.parameters)}
    name = argument.replace(".", "_")
    if name not in names:
        raise NoTemplate(f"the signature does not name {argument}")
    return name


def _described(choice: Choice) -> str:
    return ", ".join(f"{name} {value}" for name, value in choice.items())
