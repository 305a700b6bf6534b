"""Problems whose solutions define functions in place of ModelNew: prompts, answers, and a search from a golden file."""

import pytest
import tritonbench_checkout as written

from kernelbench import suite
from kernelbench.solvers.model.answers import NoCode, extract_functions
from kernelbench.solvers.problem_facts import SuiteProblem


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return written.write(tmp_path_factory.mktemp("tritonbench"))


def test_a_solver_sees_the_golden_file_and_the_functions_to_define(root):
    facts = SuiteProblem(suite.find("scale", root)[0], {"type": "cpu", "name": "CPU"})
    assert facts.functions == ["scale"] and facts.source.strip() == written.SCALE.strip()
    assert SuiteProblem(suite.find("1/19")[0], {"type": "cpu", "name": "CPU"}).extract is None


@pytest.mark.parametrize(
    "answer, reason",
    [("```python\ndef other(): ...\n```", "defines scale"), ("```python\ndef scale(:\n```", "whole"), ("", "scale")],
)
def test_an_answer_without_the_functions_is_told_what_is_missing(answer, reason):
    with pytest.raises(NoCode, match=reason):
        extract_functions(["scale"], answer)
    with pytest.raises(NoCode, match="cut off"):
        extract_functions(["scale"], answer, finished=False)


def test_the_last_whole_file_of_an_answer_counts():
    first, second = written.SCALE, written.SCALE.replace("x * factor", "factor * x")
    answer = f"First:\n```python\n{first}```\nBetter:\n```python\n{second}```\nDone."
    assert extract_functions(["scale"], answer).strip() == second.strip()
    assert extract_functions(["scale"], first).strip() == first.strip()


@pytest.mark.slow
def test_kernelband_starts_from_a_golden_file_and_asks_for_the_same_functions(root, solved, stand_in):
    pytest.importorskip("sklearn")
    faster = written.SCALE.replace("x * factor", "torch.mul(x, factor)")
    with stand_in.StandIn(lambda request, number: f"```python\n{faster}```") as served:
        outcome = solved(
            "kernelband", served, selector="scale", budget=3, problem_dir=root,
            starting_kernels={"2/3": ("py", written.SCALE)},
        )  # fmt: skip
    results = [result for result in outcome.run.results if result.confirms is None]
    assert [result.status.value for result in results] == ["ok"] * 3
    asked = [request["messages"][-1]["content"] for request in served.requests]
    assert len(asked) == 2 and all("`scale`" in text and "ModelNew" not in text for text in asked)
