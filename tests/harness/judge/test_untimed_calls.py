"""Which untimed calls a candidate gets before it is timed."""

from types import SimpleNamespace

import pytest
import torch

from harness.judge import check
from harness.judge.reference.model import PUBLISHED, InputCase

RAGGED, RARE = InputCase("ragged"), InputCase("rare_ragged")


@pytest.mark.parametrize(
    ("timed", "timed_after", "called"),
    [
        (RAGGED, True, [PUBLISHED]),
        (RAGGED, False, [PUBLISHED, RAGGED, RARE]),
        (PUBLISHED, True, [PUBLISHED, RAGGED, RARE]),
    ],
)
def test_no_untimed_call_tells_that_a_workload_is_held_out_where_timed_calls_are_compared(timed, timed_after, called):
    """A candidate that had seen such inputs by then worked in full, and left a part out otherwise: the gate held."""
    made = []
    reference = SimpleNamespace(
        setting=SimpleNamespace(timed=timed), trials=lambda copied, structure: [PUBLISHED, RAGGED, RARE],
        forget_others=lambda: None,
    )  # fmt: skip
    session = SimpleNamespace(
        reference=reference, compare=lambda *call: None,
        conditions=SimpleNamespace(structure="ragged", device=torch.device("cpu")),
        call_candidate=lambda case, seed: made.append(case),
        call_reference=lambda case, seed: SimpleNamespace(take=lambda index: ([], [])),
    )  # fmt: skip
    assert check.check(session, True, lambda text: None, timed_after) == made == called
