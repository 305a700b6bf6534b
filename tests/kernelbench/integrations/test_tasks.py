"""What all adapters share: the text of a task, the grade of an answer."""

import os

import pytest
from relu_candidates import CONDITIONS, GOOD, NO_CODE, WRONG, answer

from kernelbench.integrations import tasks


def test_the_instruction_shows_the_module_and_nothing_that_helps_to_cheat():
    text = tasks.instruction("1/19", device="cpu")
    assert "class Model(nn.Module)" in text and "ModelNew" in text and "batch_size = 64" in text
    assert not any(word in text for word in ("EXPLOITS", "TOLERANCE", "WORKLOADS", "get_flops"))


def test_the_instruction_for_a_library_has_the_signature_to_fill_in():
    text = tasks.instruction("1/19", "cpp", device="cpu")
    assert 'extern "C" void solution(' in text and "one file of the kind `.cpp`" in text


@pytest.mark.parametrize("problem, kind, message", [("1/19", "f90", "no kind of"), ("9/9", "py", "no problem")])
def test_what_does_not_exist_is_a_value_error(problem, kind, message):
    with pytest.raises(ValueError, match=message):
        tasks.instruction(problem, kind, device="cpu")


@pytest.mark.slow
def test_a_correct_answer_has_a_value_and_feedback_with_its_times():
    grade = tasks.grade_answer("1/19", answer(GOOD), **CONDITIONS)
    assert grade.correct and grade.value >= 0.3 and "every output is correct" in grade.feedback
    assert grade.metrics()["correct"] == 1 and grade.metrics()["speedup"] == (grade.speedup or 0)


@pytest.mark.slow
def test_a_wrong_answer_has_none_and_feedback_with_the_first_wrong_element():
    grade = tasks.grade_answer("1/19", answer(WRONG), **CONDITIONS)
    assert (grade.value, grade.label, grade.correct) == (0, "wrong_value", False) and "first at" in grade.feedback


def test_an_answer_without_code_is_never_evaluated():
    grade = tasks.grade_answer("1/19", NO_CODE, **CONDITIONS)
    assert (grade.value, grade.label) == (0, tasks.NO_CODE) and grade.feedback


@pytest.mark.slow
@pytest.mark.parametrize("problem", ["1/19", "1/1", "2/40", "3/1"])
def test_the_seed_program_is_correct(problem):
    assert tasks.grade(problem, tasks.seed_program(problem), **CONDITIONS).correct


def test_a_program_that_is_no_plain_file_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "kernel.py")
    with pytest.raises(OSError, match="not a plain file"):
        tasks.grade_file("1/19", tmp_path / "kernel.py", **CONDITIONS)


def test_a_program_that_is_too_large_or_in_another_encoding_is_a_grade(tmp_path):
    path = tmp_path / "program.py"
    path.write_text("#" * (5 << 20))
    grade = tasks.grade_file("1/19", path, **CONDITIONS)
    assert grade.label == tasks.NO_CODE and grade.value == 0 and "too large" in grade.feedback
    path.write_text("# -*- coding: latin-1 -*-")
    grade = tasks.grade_file("1/19", path, **CONDITIONS)
    assert grade.label == tasks.NO_CODE and "the encoding iso8859-1" in grade.feedback
    with pytest.raises(FileNotFoundError):
        tasks.grade_file("1/19", tmp_path / "gone.py", **CONDITIONS)
