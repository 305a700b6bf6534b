"""An exception that a candidate raised, as it is told."""

from pathlib import Path

import pytest

from harness.result import Status
from harness.worker.explain import explain


class WithoutText(BaseException):
    """An exception that raises itself where its text is asked for."""

    def __str__(self):
        raise self


@pytest.mark.parametrize(
    "error, name",
    [
        (WithoutText(), "WithoutText"),
        (SystemExit(10**5000), "SystemExit"),
        (SyntaxError("bad", (3, 1, 1, 5)), "SyntaxError"),
    ],
)
def test_an_exception_whose_text_or_attributes_raise_keeps_its_status_and_its_name(error, name):
    failure = explain(error, Path("solution.py"), Status.LOAD_ERROR)
    assert (failure.status, failure.message.split(",")[0]) == (Status.LOAD_ERROR, name)


def test_an_exception_is_told_by_its_class_its_text_and_the_frames_of_the_candidate(tmp_path):
    solution = tmp_path / "solution.py"
    solution.write_text("raise ValueError('no such tile')\n")
    with pytest.raises(ValueError) as raised:
        exec(compile(solution.read_text(), str(solution), "exec"), {})
    failure = explain(raised.value, solution, Status.LOAD_ERROR)
    assert failure.message.startswith("ValueError: no such tile\n") and 'solution.py", line 1' in failure.message


@pytest.mark.parametrize(
    "text",
    ["CUDA error: out of memory\nSearch for `cudaErrorMemoryAllocation'", "DefaultCPUAllocator: can't allocate memory"],
)
def test_memory_that_is_out_is_told_as_such_whatever_the_class_of_the_exception(text):
    assert explain(RuntimeError(text), Path("solution.py"), Status.RUNTIME_ERROR).status is Status.OUT_OF_MEMORY
