"""``get_flops`` of every workload of every problem is what the table in problems/README.md says of its reference."""

import json
from pathlib import Path

import pytest
from torch.utils.flop_counter import FlopCounterMode

from harness.problem.meta_recurrent import GATES
from harness.problem.module import find_problems, load_problem
from harness.sol.operators import trace
from kernelbench.suite import problem_root

CONTRACTIONS = {
    fact["id"]: fact["contraction_flops"]
    for fact in map(json.loads, (Path(__file__).parent / "published.jsonl").read_text().splitlines())
}
FILES = {str(file.id): file for file in find_problems(problem_root())}


@pytest.mark.parametrize("problem_id", FILES)
def test_formula_trace_and_counter_agree(problem_id):
    problem = load_problem(FILES[problem_id])
    for name in problem.workloads:
        workload = problem.workload(name)
        with FlopCounterMode(display=False) as counter:
            traced = trace(workload)
        assert not traced.unknown
        assert workload.flops == traced.flops, name
        # what PyTorch's counter cannot see is one operator here
        recurrent = sum(o.flops.contraction for o in traced.operators if o.name in GATES)
        assert traced.contraction_flops == counter.get_total_flops() + recurrent, name
        if name == "full":
            assert traced.contraction_flops == CONTRACTIONS[problem_id]
