"""A workload's reference as a list of operators, traced on the meta device: nothing large is allocated.

What is traced is one call as the judge makes it: train mode, no gradients. The
construction of the model is traced as well, because that is where masks come
from. Recurrent layers are one operator each; PyTorch would unroll them into
thousands. Attention appears as its parts.
"""

from __future__ import annotations

import functools
import inspect
import math
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from harness.problem.inputs import build_model, call, draw_inputs
from harness.problem.meta_recurrent import RecurrentShapes
from harness.problem.module import ProblemError, Workload
from harness.sol.flops import Flops, count_flops, count_recurrent
from harness.tensors.outputs import as_tensor, flatten

_META = torch.device("meta")


@dataclass(frozen=True)
class View:
    """A tensor as an operator sees it: some elements of a storage. Strides and offset are in elements."""

    storage: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    dtype: torch.dtype

    @property
    def numel(self) -> int:
        return math.prod(self.shape)

    @property
    def distinct(self) -> int:
        """Elements of the storage that the view shows; an expanded dimension shows the same ones again."""
        return math.prod(size for size, stride in zip(self.shape, self.strides) if stride)

    @property
    def bytes(self) -> int:
        return self.distinct * self.dtype.itemsize


@dataclass(frozen=True)
class Operator:
    """One operator of the trace. Tensors among ``arguments`` are views."""

    name: str  # without namespace and overload: ``mm``, ``convolution``
    arguments: tuple[Any, ...]
    options: dict[str, Any]
    outputs: tuple[View, ...]
    writes: frozenset[int]  # storages that it changes or creates
    flops: Flops

    @functools.cached_property
    def inputs(self) -> list[View]:
        """The tensors among the arguments, in order."""
        leaves = pytree.tree_leaves((self.arguments, self.options))
        return [leaf for leaf in leaves if isinstance(leaf, View)]

    @property
    def output(self) -> View:
        return self.outputs[0]

    @property
    def is_view(self) -> bool:
        """Return whether it only looks at a storage in another way."""
        return bool(self.outputs) and not self.writes


@dataclass(frozen=True)
class Trace:
    """One call of a reference. Names are those of the signature."""

    inputs: dict[str, View]
    parameters: dict[str, View]  # and buffers, in state-dict order
    buffers: frozenset[str]  # which of them are buffers
    outputs: tuple[View, ...]
    construction: tuple[Operator, ...]
    operators: tuple[Operator, ...]

    @property
    def contraction_flops(self) -> int:
        return sum(operator.flops.contraction for operator in self.operators)

    @property
    def elementwise_flops(self) -> int:
        return sum(operator.flops.elementwise for operator in self.operators)

    @property
    def flops(self) -> int:
        return self.contraction_flops + self.elementwise_flops

    @property
    def unknown(self) -> list[str]:
        """Names of operators that are not counted, each once."""
        return list(dict.fromkeys(operator.name for operator in self.operators if not operator.flops.known))


def trace(workload: Workload, dtype: torch.dtype = torch.float32) -> Trace:
    """The operators of one call with floating-point tensors of ``dtype``.

    Raises ProblemError where the reference cannot be traced without data.
    """
    problem = workload.problem
    tracer = _Tracer()
    try:
        inputs = draw_inputs(workload, 0, _META, dtype)
        with tracer:
            model = build_model(problem.module.Model, workload, 0, _META, dtype)
        construction, tracer.operators = tracer.operators, []
        with _META, RecurrentShapes(tracer.record_recurrent), tracer:
            outputs = [as_tensor(leaf) for leaf in flatten(call(model, inputs))]
    except Exception as error:
        raise ProblemError(
            f"problem {problem.id} ({problem.path}), workload {workload.name}: "
            f"the reference cannot be traced: {type(error).__name__}: {error}"
        ) from error
    names = list(inspect.signature(problem.module.Model.forward).parameters)[1:]
    # a tensor that forward uses but the state dict lacks is a buffer all the same
    state = model.state_dict() | dict(model.named_buffers())
    parameters = {name for name, _ in model.named_parameters()}
    return Trace(
        inputs={n: tracer.view(v) for n, v in zip(names, inputs) if isinstance(v, torch.Tensor)},
        parameters={name: tracer.view(value) for name, value in state.items()},
        buffers=frozenset(state.keys() - parameters),
        outputs=tuple(tracer.view(output) for output in outputs),
        construction=tuple(construction),
        operators=tuple(tracer.operators),
    )


@dataclass
class _Tracer(TorchDispatchMode):
    operators: list[Operator] = field(default_factory=list)

    def __post_init__(self):
        super().__init__()
        self._alive: list[torch.UntypedStorage] = []  # so that no two storages have the same address
        self._numbers: dict[int, int] = {}

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Return False: nothing is compiled under it, and asking would import Dynamo, which takes 2 s.

        For operators whose shapes are worked out in Python it is imported all the same: by PyTorch 2.13 in 180 of
        the 250 problems.
        """
        return False

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = function(*args, **kwargs)
        written = [
            args[index] if index < len(args) else kwargs.get(argument.name)
            for index, argument in enumerate(function._schema.arguments)
            if argument.alias_info is not None and argument.alias_info.is_write
        ]
        name = function._overloadpacket.__name__
        self._record(name, args, kwargs, result, written, count_flops(function, args, kwargs, result))
        return result

    def record_recurrent(self, name: str, arguments: tuple, result: tuple) -> None:
        self._record(name, arguments, {}, result, [], count_recurrent(name, *arguments[:4]))

    def view(self, tensor: torch.Tensor) -> View:
        return View(self._number(tensor), tuple(tensor.shape), tensor.stride(), tensor.storage_offset(), tensor.dtype)

    def _record(self, name: str, args: tuple, kwargs: dict, result: Any, written: list, flops: Flops) -> None:
        seen = {view.storage for view in map(self.view, _tensors((args, kwargs)))}
        outputs = tuple(map(self.view, _tensors(result)))
        writes = {self._number(tensor) for tensor in _tensors(written)}
        writes |= {view.storage for view in outputs} - seen
        as_views = pytree.tree_map_only(torch.Tensor, self.view, (tuple(args), dict(kwargs)))
        self.operators.append(Operator(name, *as_views, outputs, frozenset(writes), flops))

    def _number(self, tensor: torch.Tensor) -> int:
        storage = tensor.untyped_storage()
        if storage._cdata not in self._numbers:
            self._numbers[storage._cdata] = len(self._alive)
            self._alive.append(storage)
        return self._numbers[storage._cdata]


def _tensors(values: Any) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(values) if isinstance(leaf, torch.Tensor)]
