"""A submission is taken up to the sizes that an evaluator takes."""

from kernelbench.service.submission import Intake


def test_a_reason_of_megabytes_is_cut_to_what_an_evaluator_takes():
    """It ended the evaluator, and another client waited 100 s for a new one."""
    body = {"id": "0" * 32, "problem": "1/19", "source": "", "kind": "py", "fault": "é" * 4_000_000}
    intake = Intake("cpu", "cpu")
    job, _ = intake.job(intake.accept(body, "client").job)
    assert job.fault == "é" * 2000
