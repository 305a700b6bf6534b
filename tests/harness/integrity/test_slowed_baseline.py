"""How much longer the baseline may take beside a candidate."""

import pytest

from harness.integrity import slowed_baseline
from harness.result import CandidateFailure, Status


@pytest.mark.parametrize(("beside_ms", "alone_ms"), [(8.0, 8.0), (8.7, 8.0), (7.0, 8.0), (0.014, 0.009)])
def test_what_takes_hardly_longer_than_alone_accuses_nobody(beside_ms, alone_ms):
    slowed_baseline.check(beside_ms, alone_ms)
    assert not slowed_baseline.slowed(beside_ms, alone_ms)


@pytest.mark.parametrize(("beside_ms", "alone_ms"), [(9.0, 8.0), (16.0, 8.0), (0.016, 0.009)])
def test_what_takes_longer_names_both_times(beside_ms, alone_ms):
    assert slowed_baseline.slowed(beside_ms, alone_ms)
    with pytest.raises(CandidateFailure) as caught:
        slowed_baseline.check(beside_ms, alone_ms)
    assert (caught.value.status, caught.value.rule) == (Status.REJECTED, "slowed_baseline")
    assert f"took {beside_ms:.4g} ms in turn with the candidate and {alone_ms:.4g} ms once" in caught.value.message
