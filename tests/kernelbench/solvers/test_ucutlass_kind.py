"""µCUTLASS as a code representation: how its answers are read, what its prompt says, and its free tool."""

import json

import pytest

from kernelbench.solvers.mantis.representations import REPRESENTATIONS
from kernelbench.solvers.model.answers import NoCode, extract
from kernelbench.solvers.model.tools import answer_of
from kernelbench.solvers.prompting.prompts import Prompts
from kernelbench.ucutlass import check

PROGRAM = """# kb: problem=2/76
gemm().with_dtype(input=fp16, acc=fp32, output=fp16).with_layout(A=RowMajor, B=ColumnMajor, C=RowMajor)
  .with_arch(sm_90a)
  >> bias() >> relu()
bind(A=x, B=gemm.weight)
"""


@pytest.mark.parametrize(
    "answer",
    [
        f"```\n{PROGRAM}```", f"Here it is:\n```dsl\n{PROGRAM}```\nIt fuses the bias.", PROGRAM,
        f"<think>gemm(</think>\n{PROGRAM}", f"First:\n```\ngemm()\n```\nBetter:\n```\n{PROGRAM}```",
    ],
)  # fmt: skip
def test_a_program_is_found_in_an_answer(answer):
    assert check(extract(answer, "dsl")) == check(PROGRAM)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [("I cannot do that.", "an operation such as gemm()"), ("```\ngemm(.with_arch(sm_90a\n```", "parentheses"),
     ("```python\nclass ModelNew: pass\n```", "an operation such as gemm()")],
)  # fmt: skip
def test_an_answer_without_a_program_says_what_is_missing(answer, reason):
    with pytest.raises(NoCode, match=reason.replace("(", r"\(").replace(")", r"\)")):
        extract(answer, "dsl")


def test_the_form_teaches_the_language_and_shows_the_signature():
    prompts = Prompts()
    form = prompts.render("mantis/form_ucutlass", starter="SIGNATURE", page=prompts.render("ucutlass"))
    assert "SIGNATURE" in form and ".with_threadblockshape" in form
    assert REPRESENTATIONS["dsl"].form == "mantis/form_ucutlass" and REPRESENTATIONS["dsl"].page == "ucutlass"


def test_the_tool_names_broken_rules_and_says_ok():
    tools = REPRESENTATIONS["dsl"].tools

    def call(source):
        return answer_of({"name": "ucutlass_check", "arguments": json.dumps({"source": source})}, tools)

    assert call(PROGRAM) == "ok"
    assert "[arch-sm90a]" in call(PROGRAM.replace("sm_90a", "sm_90"))
    assert "did you mean gemm?" in call("gem()")
