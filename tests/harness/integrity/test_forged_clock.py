"""How far a worker's times may be from the judge's clock."""

import pytest

from harness.integrity import forged_clock
from harness.result import CandidateFailure


def allowed(claimed_ms, calls=8, held=True, device_type="cuda", load=1.0):
    return forged_clock.allowed_ms(claimed_ms, calls, held, device_type, load)


@pytest.mark.parametrize(("claimed_ms", "calls"), [(0.005, 256), (0.06, 134), (1.0, 9), (6.0, 2), (0.3, 6)])
def test_a_gpu_takes_a_moment_to_turn_to_a_burst_and_hardly_more(claimed_ms, calls):
    assert allowed(claimed_ms, calls) > claimed_ms * 1.003 + 0.31 / calls, "of honest kernels this has been seen"
    assert allowed(claimed_ms, calls) <= claimed_ms * 1.03 + max(0.003, 0.4 / calls) + 1e-9


def test_what_slows_the_reference_in_a_burst_may_slow_the_candidate():
    assert allowed(6.0, load=1.1) == pytest.approx(1.1 * allowed(6.0))
    assert allowed(6.0, load=0.7) == allowed(6.0), "an honest reference is hot in a burst"


def test_a_candidate_that_slows_the_reference_gains_little():
    assert allowed(6.0, load=3.0) == allowed(6.0, load=None) < 1.2 * 6.0


def test_without_a_reference_to_compare_a_cpu_is_taken_to_be_its_candidates_alone():
    assert allowed(1.0, device_type="cpu", load=None) == allowed(1.0, device_type="cpu", load=1.0) == 1.6
    assert allowed(1.0, device_type="cpu", load=2.0) == 3.2


def test_far_more_than_that_is_rejected_with_both_figures():
    forged_clock.check(1.0, 1.64, 8, 1.1, True, "cuda")
    with pytest.raises(CandidateFailure) as failure:
        forged_clock.check(1.0, 1.66, 8, 1.1, True, "cuda")
    assert failure.value.rule == "forged_clock"
    assert "reports 1 ms" in failure.value.message and "took 1.66 ms" in failure.value.message


def test_on_a_cpu_others_work_is_nobodys_forgery():
    forged_clock.check(1.0, 4.6, 8, 1.55, True, "cpu")
    with pytest.raises(CandidateFailure):
        forged_clock.check(1.0, 4.7, 8, 1.55, True, "cpu")


def test_a_call_that_waited_for_a_core_is_no_forgery():
    forged_clock.check(0.28, 2.05, 32, 0.47, True, "cpu", worked_ms=0.9)
    with pytest.raises(CandidateFailure):
        forged_clock.check(0.28, 2.05, 32, 0.47, True, "cpu", worked_ms=1.0)


def test_with_launches_in_it_a_burst_has_leeway_enough():
    forged_clock.check(1.0, 2.1, 8, 2.2, False, "cuda")
    with pytest.raises(CandidateFailure):
        forged_clock.check(1.0, 2.3, 8, 2.2, False, "cuda")


def test_readings_end_where_nothing_that_matters_would_be_charged():
    assert forged_clock.free_ms(1.0, 1.1, held=True) == 1.1
    assert forged_clock.free_ms(1.0, 2.2, held=False) == 1.0  # the judge's figure counts then
    assert forged_clock.agree(1.0, 1.1, 1.1, held=True) and not forged_clock.agree(1.0, 1.11, 1.1, held=True)
    assert forged_clock.agree(1.0, 1.01, 2.2, held=False) and not forged_clock.agree(1.0, 1.3, 2.2, held=False)
