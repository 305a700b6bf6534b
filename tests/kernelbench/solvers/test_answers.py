"""The code in an answer, whatever stands around it; or why there is none."""

import pytest
from linear_time import MEGABYTE, in_linear_time

from kernelbench.solvers.model.answers import _FENCE, NoCode, _defines_entry, extract

CODE = "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return x + 1\n"
EARLIER = CODE.replace("x + 1", "x")
NESTED = CODE.replace("    def", '    """Used as\n\n```\nModelNew()(x)\n```\n    """\n\n    def')
CUDA = '#include <cstddef>\n\nextern "C" void solution(const float* x, float* y, size_t n) {\n    y[0] = x[0];\n}\n'

FORMS = {
    "a labelled fence": f"```python\n{CODE}```",
    "a fence without a label": f"```\n{CODE}```",
    "a wrong label": f"```cpp\n{CODE}```",
    "prose around": f"Sure! This is fast:\n\n```python\n{CODE}```\n\nIt adds one.",
    "an unclosed fence": f"```python\n{CODE}",
    "tildes": f"~~~py\n{CODE}~~~",
    "a longer fence": f"````python\n{CODE}````",
    "an indented fence": f"1. The code:\n   ```python\n{CODE}   ```",
    "no fence at all": CODE,
    "no fence, with prose": f"Here is the module.\n\n{CODE}\nThis should be twice as fast!",
    "several versions, the last one counts": f"```python\n{EARLIER}```\nBetter:\n```python\n{CODE}```",
    "how to use it, afterwards": f"```python\n{CODE}```\nUse it:\n```python\nmodel = ModelNew()\n```",
    "how to build it, before": f"```bash\npip install torch\n```\n```python\n{CODE}```",
    "thoughts": f"<think>Maybe\n```python\n{EARLIER}```\nno</think>\n```python\n{CODE}```",
    "thoughts that the prompt opened": f"Maybe\n```python\n{EARLIER}```\nno\n</think>\n```python\n{CODE}```",
    "answer tags": f"I would\n```python\n{EARLIER}```\n<answer>\n```python\n{CODE}```\n</answer>",
    "answer tags without a fence": f"<answer>{CODE}</answer>",
    "answer tags that are not closed": f"<answer>\n```python\n{CODE}```",
    "line ends of another system": f"```python\r\n{CODE}```".replace("\n", "\r\n").replace("\r\r", "\r"),
}


@pytest.mark.parametrize("form", FORMS)
def test_code_is_found(form):
    assert extract(FORMS[form]) == CODE


def test_fences_inside_of_the_code_do_not_end_it():
    assert extract(f"```python\n{NESTED}```\nThat is all.") == NESTED


def test_code_in_cuda_and_in_cpp():
    assert extract(f"Here:\n```cuda\n{CUDA}```\n", "cu") == CUDA
    assert extract(CUDA, "cpp") == CUDA
    assert extract(f"```cpp\nint helper();\n```\nand\n```cpp\n{CUDA}```", "cu") == CUDA


@pytest.mark.parametrize(
    "said, reason",
    [
        ("", "is empty"),
        ("I cannot do that.", "no code that defines a class ModelNew"),
        ("<think>Let me see. The kernel", "only thoughts"),
        ("```python\nclass Model: pass\n```", "no code that defines a class ModelNew"),
        ("```diff\n--- a/model.py\n+++ b/model.py\n@@ -1 +1 @@\n-x\n+x + 1\n```", "is a diff"),
        (f"```python\n{CODE}    if x:\n```", "not complete: it is not Python"),
        (f"```python\n{CODE}\n# ... rest of the code as before\n```", "leaves parts out"),
        (f"```python\n{CODE}\n# The remaining code is unchanged\n```", "leaves parts out"),
    ],
)
def test_an_answer_without_a_solution_says_why(said, reason):
    with pytest.raises(NoCode, match=reason):
        extract(said)


def test_an_answer_that_was_cut_off_says_so():
    with pytest.raises(NoCode, match="cut off"):
        extract(f"```python\n{CODE[:-20]}", finished=False)
    assert extract(f"```python\n{CODE}```", finished=False) == CODE


def test_comments_that_only_look_like_placeholders_are_code():
    code = CODE + "# same result as before, but faster\n# ... and that is it\n"
    assert extract(f"```python\n{code}```") == code


@pytest.mark.parametrize("answer", ["```\n" * 20_000, "<think>" * 50_000, "<think>" * 50_000 + "</thought>"])
@pytest.mark.timeout(60)
def test_an_answer_of_nothing_but_marks_is_read_in_one_pass(answer):
    with pytest.raises(NoCode):
        extract(answer)


@pytest.mark.slow
def test_of_an_answer_of_many_pieces_only_so_many_characters_are_parsed():
    """Each place where its code may begin was parsed with each of its ends, up to a limit in time: by chance there was
    code, and a resumed run found that it had gone another way."""
    many_starts = "import a\n" * 45 + "class ModelNew:\n  pass\n" + "x = [(1, 2, 3), {4: 5}]\n" * 3000
    for _ in range(2):  # what was parsed before is not free
        with pytest.raises(NoCode, match="too many pieces that are no whole solution"):
            extract(many_starts + "no python\n" * 60)
    assert extract(f"```python\n{CODE}```") == CODE


def test_of_an_answer_in_cpp_only_so_many_characters_are_looked_through():
    """By time alone the same answer was code in one life of a run, and none in the next."""
    source = 'extern "C" void solution(const float* x, float* y) {}\n'
    starts = "".join(f"// {n} {{\n" for n in range(39))
    many_starts = f"{starts}// 39\n{';' * 62_000}\n{source}" + "prose {\n" * 39
    with pytest.raises(NoCode, match="too many pieces that are no whole solution"):
        extract(many_starts, "cpp")
    assert extract(f"```cpp\n{source}```", "cpp") == source


def test_thoughts_of_several_kinds_are_left_out():
    thought = "<think>a</think>So <reasoning>```python\nx\n```</reasoning> it is. <think>"
    assert extract(f"{thought}\n```python\n{CODE}```") == CODE


@pytest.mark.parametrize(
    "kind, piece", [("dsl", "conv1d"), ("dsl", "gemm\n"), ("cu", 'extern "C" '), ("cu", "extern\n"), ("cu", ";")]
)
def test_a_megabyte_without_an_entry_is_read_in_linear_time(kind, piece):
    with in_linear_time():
        assert not _defines_entry(piece * (MEGABYTE // len(piece)), kind)


@pytest.mark.parametrize("line", ["~", "`", " ", "\t~~~"])
def test_a_megabyte_of_marks_that_is_no_fence_is_read_in_linear_time(line):
    """100 kB of tildes before a backtick took 20 s, and the answers of other problems waited."""
    with in_linear_time():
        assert not list(_FENCE.finditer(line * (MEGABYTE // len(line)) + ("`" if "~" in line else "x`")))
    assert [fence["marks"] for fence in _FENCE.finditer("~~~~ python\nx\n~~~~\n```py\ny\n```")] == [
        "~~~~", "~~~~", "```", "```",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "source, is_entry",
    [
        ('extern "C" void solution(int);', True),
        ('extern  "C" {\nvoid a(int x)\n{} void solution (int);}', True),
        ('extern "C" void a(); void solution(int);', False),
        ('void solution(int), b; extern "C" int c', False),
        ('extern "C" void my_solution(int);', False),
    ],
)
def test_the_entry_is_in_one_statement_with_its_linkage(source, is_entry):
    assert _defines_entry(source, "cu") == is_entry


@pytest.mark.parametrize(
    "source, is_entry",
    [("pipeline(", True), (" group_gemm (x", True), ("conv2d_fprop\n(", True), ("gemms(", False), ("# gemm(", False)],
)
def test_the_entry_of_a_program_is_an_operation_at_the_beginning_of_a_line(source, is_entry):
    assert _defines_entry(source, "dsl") == is_entry
