"""A golden Triton file and its perf file as ``Model`` and ``get_inputs``; imports torch alone.

The text of this module is the end of every generated problem. The perf file makes the inputs of all its shapes at
once, on the host. Here one shape is made at a time, on the device where it is needed: tensors of the others are made
on the meta device, unless the file reads their values.
"""

import builtins
import contextlib
import functools
import io
import linecache
import os
import random
import sys
import types

import numpy
import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree
from torch.utils._device import _device_constructors

TEST = "test"  # the workload that runs the file's own test

if not torch.cuda.is_available():
    # Kernels run in Triton's interpreter. Those that use Triton's library of functions need it in the environment of
    # the command as well: its functions are decorated when Triton is imported, which may be before this.
    os.environ.setdefault("TRITON_INTERPRET", "1")


class Made(Exception):
    """Ends the perf file's loop: the inputs of the shape are there."""


class Shapes(list):
    """The list that a perf file appends inputs to; keeps those of one shape, or counts all where ``index`` is None."""

    def __init__(self, index):
        super().__init__()
        self.index, self.count, self.found = index, 0, None

    def append(self, inputs):
        if self.count == self.index:
            self.found = inputs
            raise Made
        self.count += 1
        super().append(inputs)

    def extend(self, several):
        for inputs in several:
            self.append(inputs)


class Devices(TorchFunctionMode):
    """Put what a file makes on ``device()``, whatever device it names."""

    def __init__(self, device):
        super().__init__()
        self._device = device

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if function in _device_constructors():
            kwargs["device"] = self._device()
            if self._device().type == "meta":
                kwargs.pop("generator", None)
        elif function is torch.Tensor.cuda:
            return args[0].to(self._device())
        elif function is torch.Tensor.to:
            if "device" in kwargs:
                kwargs["device"] = self._device()
            named = len(args) > 1 and isinstance(args[1], (str, torch.device))
            args = (args[0], self._device(), *args[2:]) if named else args
        return function(*args, **kwargs)


class PerformanceMetrics:
    """Base class of a perf file's class, in place of TritonBench's own."""

    def __init__(self, op_name, dtype=None, is_backward=False, **kwargs):
        self.op_name, self.dtype, self.is_backward, self.kwargs = op_name, dtype, is_backward, kwargs
        self._shapes = Shapes(None)

    @property
    def input_tensors(self):
        return self._shapes

    @input_tensors.setter
    def input_tensors(self, inputs):
        if inputs is not self._shapes:  # += assigns the list to itself
            self._shapes.extend(inputs)


class Problem:
    """One golden file, its perf file and its test.

    Parameters
    ----------
    name
        Of the golden file, without ``.py``.
    golden, perf, test
        Sources.
    """

    def __init__(self, name, golden, perf, test):
        self.name, self.golden, self.perf, self.test = name, golden, perf, test

    @functools.cached_property
    def functions(self):
        """The golden file's module, imported once, so that what it tunes at its first call stays tuned."""
        return module_of(f"golden_{self.name}", self.golden)

    @functools.cached_property
    def golden_metrics(self):
        """``metrics`` of the golden file."""
        return self.metrics(self.functions)

    def get_inputs(self, shape):
        """Return the tensors among the arguments of ``call_op``, on the default device; for ``TEST`` an unused one."""
        device = torch.empty(0).device
        if shape == TEST:
            return [torch.zeros(1, device=device)]
        arguments = self.inputs(self.golden_metrics, shape, device)
        return [leaf for leaf in pytree.tree_leaves(arguments) if isinstance(leaf, torch.Tensor)]

    def metrics(self, functions):
        """Return the perf file's object, whose ``call_op`` calls ``functions``, a module with the golden names."""
        utilities = types.ModuleType("performance_utils")
        utilities.Performance_Metrics, utilities.do_bench_config = PerformanceMetrics, lambda *_, **__: None
        package = types.ModuleType("TritonBench_v1")
        setattr(package, self.name, functions)
        stubs = {
            "performance_utils": utilities, "TritonBench_v1": package, f"TritonBench_v1.{self.name}": functions,
        }  # fmt: skip
        before = {name: sys.modules.get(name) for name in stubs}
        sys.modules.update(stubs)
        try:
            return module_of(f"perf_{self.name}", self.perf).performance_metrics()
        finally:
            for name, module in before.items():
                sys.modules.pop(name)
                if module is not None:
                    sys.modules[name] = module

    def inputs(self, metrics, index, device):
        """Return the arguments of ``call_op`` for one shape, on ``device``."""
        shapes = metrics._shapes = Shapes(index)
        meta = torch.device("meta")
        wanted = Devices(lambda: device if shapes.count == index else meta)
        seed_others()
        with wanted, contextlib.suppress(Made), quiet():
            metrics.get_input_tensors()
        if shapes.found is None:
            raise ValueError(f"the perf file of {self.name} has {shapes.count} shapes, and none of number {index}")
        with Devices(lambda: device), quiet():
            return metrics.to_cuda(shapes.found)

    def work(self, metrics):
        """Return FLOPs and bytes of every shape by the perf file's own formulas; None where it has none."""
        meta = torch.device("meta")
        shapes = metrics._shapes = Shapes(None)
        with Devices(lambda: meta), quiet():
            metrics.get_input_tensors()
            return [
                (_of_a_second(metrics.get_tflops, one, 1e12), _of_a_second(metrics.get_gbps, one, 1e9))
                for one in shapes
            ]


def _of_a_second(rate, inputs, unit):
    """The work in a call that takes one second: ``rate`` takes the time in ms, and returns a rate in ``unit``."""
    try:
        work = rate(inputs, 1000.0)
        return round(work * unit) if isinstance(work, (int, float)) else None
    except Exception:  # there is no formula, or what it gives is no finite number
        return None


class Operator(torch.nn.Module):
    """``call_op`` of a problem's perf file over the functions of a module; or, for ``TEST``, the file's own test.

    Returns what it returns, and every input tensor and gradient afterwards: some golden files write their result into
    an argument, so what becomes of the arguments is part of the answer.
    """

    def __init__(self, problem, functions, shape):
        super().__init__()
        self._problem, self._functions, self._shape = problem, functions, shape
        if shape == TEST:
            return
        self._metrics = problem.metrics(functions)
        inputs = problem.inputs(self._metrics, shape, torch.empty(0).device)
        leaves, self._spec = pytree.tree_flatten(inputs)
        # of objects that are no tensors, such as layers, each side has its own
        self._leaves = [_TENSOR if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        self._differentiable = [leaf.requires_grad for leaf in leaves if isinstance(leaf, torch.Tensor)]

    def forward(self, *tensors):
        if any(tensor.is_meta for tensor in tensors):
            raise NotImplementedError("a Triton kernel cannot be traced without data")  # it would read address 0
        for tensor, wanted in zip(tensors, () if self._shape == TEST else self._differentiable):
            tensor.requires_grad_(wanted)
        with torch.enable_grad(), on_host(), quiet():
            if self._shape == TEST:
                return run_test(self._problem, self._functions, tensors[0].device)
            given = iter(tensors)
            leaves = [next(given) if leaf is _TENSOR else leaf for leaf in self._leaves]
            result = self._metrics.call_op(pytree.tree_unflatten(leaves, self._spec))
        gradients = [tensor.grad for tensor in tensors if tensor.is_leaf and tensor.grad is not None]
        return [comparable(result), [tensor.detach() for tensor in tensors], gradients]


_TENSOR = object()


def run_test(problem, functions, device):
    """Run the golden file's test with ``functions`` and return what it recorded, on ``device``.

    Some tests record copies on the CPU; TritonBench compares what they print.
    """
    names = dict(functions.__dict__)
    exec(builtins.compile(problem.test, f"<test_{problem.name}>", "exec"), names)
    recorded = [value for name, value in names.items() if name.startswith("result") and isinstance(value, dict)]
    if not recorded:
        raise ValueError(f"the test of {problem.name} records no result")
    return pytree.tree_map_only(torch.Tensor, lambda tensor: tensor.to(device), comparable(recorded[-1]))


def comparable(value):
    """Return the tensors and numbers in ``value``, nested as they are; None in the place of anything else."""
    if isinstance(value, torch.Tensor):
        return value.detach()
    if isinstance(value, dict):
        return {key: comparable(part) for key, part in value.items()}
    if isinstance(value, (tuple, list)):
        return [comparable(part) for part in value]
    return value if isinstance(value, (bool, int, float)) else None


def module_of(name, source):
    """Import ``source`` under ``name``; Triton can read the lines of its kernels."""
    path = f"<{name}>"
    linecache.cache[path] = (len(source), None, source.splitlines(keepends=True), path)
    module = types.ModuleType(name)
    module.__file__ = path
    sys.modules[name] = module
    with on_host():
        exec(builtins.compile(source, path, "exec"), module.__dict__)
    return module


def on_host():
    """Without a GPU: a context in which what is made for one is made on the CPU."""
    return contextlib.nullcontext() if torch.cuda.is_available() else Devices(lambda: torch.device("cpu"))


def quiet():
    """Return a context whose output to the terminal is dropped."""
    return contextlib.redirect_stdout(io.StringIO())


def seed_others():
    """Seed the generators of Python and NumPy as PyTorch's is."""
    seed = torch.initial_seed()
    random.seed(seed)
    numpy.random.seed(seed % 2**32)
