"""Every problem is the published one: same arguments, shapes, weights, order of draws, FLOPs.

``published.jsonl`` holds the facts of the published suite, one problem a line.
"""

import inspect
import json
from pathlib import Path

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from harness.problem.inputs import build_model, call, draw_inputs, seed_generators
from harness.problem.meta_recurrent import RecurrentShapes
from harness.problem.module import find_problems, load_problem
from harness.tensors.outputs import flatten
from kernelbench.suite import problem_root

FACTS = {
    fact["id"]: fact
    for fact in map(json.loads, (Path(__file__).parent / "published.jsonl").read_text().splitlines())
}
FILES = {str(file.id): file for file in find_problems(problem_root())}
META, CPU = torch.device("meta"), torch.device("cpu")

each_problem = pytest.mark.parametrize("problem_id", FILES)


def shapes(values):
    """[shape, dtype] of each tensor; scalars as they are."""
    return [
        [list(v.shape), str(v.dtype).removeprefix("torch.")] if isinstance(v, torch.Tensor) else v
        for v in values
    ]


def seeded_call(model, inputs):
    seed_generators(13, CPU)
    return call(model, inputs)


def constructor_parameters(model_class):
    own = vars(model_class).get("__init__")
    if own is None:
        return []
    _, *parameters = inspect.signature(own).parameters.values()
    return [f"**{p.name}" if p.kind is p.VAR_KEYWORD else p.name for p in parameters]


def as_json(value):
    """Tuples compare as lists, as in the facts file."""
    return json.loads(json.dumps(value))


@each_problem
def test_full_workload_is_the_published_one(problem_id):
    problem, fact = load_problem(FILES[problem_id]), FACTS[problem_id]
    workload = problem.workload("full")
    with META:
        # called without arguments, each function describes the first workload
        defaults = problem.module.get_inputs()
        init_inputs = problem.module.get_init_inputs()
        inputs = workload.get_inputs()
        model = build_model(problem.module.Model, workload, 0, META, torch.float32)
        with RecurrentShapes():
            outputs = flatten(call(model, inputs))
    assert as_json(init_inputs) == as_json(workload.get_init_inputs()) == fact["init_inputs"]
    assert constructor_parameters(problem.module.Model) == fact["init_params"]
    assert list(inspect.signature(model.forward).parameters) == fact["forward_params"]
    assert shapes(inputs) == shapes(defaults) == fact["inputs"]
    assert shapes(outputs) == fact["outputs"]
    assert [[name, list(p.shape)] for name, p in model.named_parameters()] == fact["parameters"]
    state = model.state_dict()
    buffers = [[name, list(b.shape)] for name, b in model.named_buffers() if name in state]
    assert sorted(buffers) == sorted(fact["buffers"])

    get_flops = problem.module.get_flops
    assert get_flops() == workload.flops, "get_flops() must describe the full workload"
    elementwise = workload.flops - fact["contraction_flops"]
    assert elementwise >= 0, "get_flops counts less than the matrix products and convolutions"


@each_problem
def test_every_other_workload_runs_on_a_cpu_or_traces(problem_id):
    problem = load_problem(FILES[problem_id])
    assert "small" in problem.workloads and list(problem.workloads)[0] == "full"
    if problem.id.level < 3:
        assert len(problem.workloads) >= 3, "levels 1 and 2 have a further realistic shape"
    for name in problem.workloads:
        workload = problem.workload(name)
        assert isinstance(workload.flops, int) and workload.flops > 0
        if name not in ("full", "small"):
            with META:
                model = build_model(problem.module.Model, workload, 0, META, torch.float32)
                call(model, workload.get_inputs())


class DrawLog(TorchDispatchMode):
    """Notes the storage that each random operator fills, in order."""

    RANDOM = ("uniform", "normal", "rand", "bernoulli", "trunc")

    def __init__(self):
        super().__init__()
        self.drawn = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if any(word in func.__name__ for word in self.RANDOM) and isinstance(result, torch.Tensor):
            self.drawn.append((result.untyped_storage()._cdata, result))
        return result


@each_problem
def test_small_workload_draws_its_weights_in_the_published_order(problem_id):
    problem, fact = load_problem(FILES[problem_id]), FACTS[problem_id]
    workload = problem.workload("small")
    with DrawLog() as log:
        model = build_model(problem.module.Model, workload, 7, CPU, torch.float32)
    names = {p.untyped_storage()._cdata: name for name, p in model.named_parameters()}
    drawn = [names[storage] for storage, _ in log.drawn if storage in names]
    # some networks draw a weight twice, and some weights are scaled copies of what was drawn
    assert drawn == [name for name in fact["draw_order"] if name in drawn]

    inputs = draw_inputs(workload, 11, CPU, torch.float32)
    outputs = flatten(seeded_call(model, inputs))
    assert all(torch.isfinite(o).all() for o in outputs if o.is_floating_point())
    again = flatten(seeded_call(build_model(problem.module.Model, workload, 7, CPU, torch.float32), inputs))
    assert all(torch.equal(a, b) for a, b in zip(outputs, again)), "not deterministic under a seed"
