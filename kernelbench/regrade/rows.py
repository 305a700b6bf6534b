"""Each claim beside what was found: the rows of a regrade. Reads runs and claims, runs nothing."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.result import Result, first_line
from kernelbench.formats import claims
from kernelbench.formats.claims import Claim, ClaimsError
from kernelbench.metrics import held_out, settled
from kernelbench.metrics.workloads import led_by
from kernelbench.regrade.traits import OWN_KERNELS, traits
from kernelbench.review import labels
from kernelbench.review.labels import NONE, Label
from kernelbench.run import Run
from kernelbench.run_files import unevaluated
from kernelbench.run_files.folder import leads_by_a_link_in

NOT_EVALUATED = "not evaluated"


@dataclass(frozen=True)
class Row:
    """One claim, and the result of the same source; ``result`` is None where there is none, and ``why`` says why.

    Its speedup is over the baseline that the claim leads with, where that was measured here too.
    """

    claim: Claim
    result: Result | None
    label: Label = NONE
    traits: dict[str, str] = field(default_factory=dict)
    why: str = ""

    @property
    def status(self) -> str:
        return self.result.status.value if self.result else NOT_EVALUATED

    @property
    def settled(self) -> float | None:
        """The settled speedup; of a rejected result what it would have been; None where it was not measured."""
        return settled.settled_speedup(self.result) if self.result else None

    @property
    def inflation(self) -> float | None:
        """Claimed over settled speedup; None without either."""
        return self.claim.speedup / self.settled if self.claim.speedup and self.settled else None

    @property
    def accepted(self) -> bool:
        """Return whether it is right, and no label leaves it out."""
        return self.result is not None and self.result.correct and self.label.accepted

    @property
    def categories(self) -> list[str]:
        """The traits that say where the speed comes from, or ``own_kernels``."""
        return list(self.traits) or [OWN_KERNELS]

    def to_json(self) -> dict[str, Any]:
        """Return the row as data."""
        result = self.result
        return {
            "problem": self.claim.problem,
            "solution": self.claim.solution,
            "claimed": self.claim.speedups,
            "claimed_status": self.claim.status,
            "origin": self.claim.origin,
            "status": self.status,
            "rule": result.rule if result else None,
            "message": first_line(result.message) if result else self.why,
            **(settled.to_json(result) if result else {"settled_speedup": None, "verdict": None}),
            "inflation": self.inflation,
            "label": self.label.band,
            "category": self.label.category,
            "reason": self.label.reason,
            "by": self.label.by,
            "traits": self.traits,
            "held_out": held_out.verdict(result) if result else None,
            "accepted": self.accepted,
        }


def claims_of(run: Run, path: Path | None = None) -> list[Claim]:
    """Return the claims in ``path``, or those beside the run's solutions. Raises ClaimsError where there are none."""
    if path is None:
        path = Path(run.config.get("solutions") or "").parent / claims.LOG
        # which the run names, and others may have made
        if path.is_symlink() or leads_by_a_link_in(run.path, path) or not os.path.isfile(path):
            raise ClaimsError(f"no {claims.LOG} beside the solutions of {run.path}; name it with --claims FILE")
    return claims.load(path)


def rows_of(run: Run, claimed: Sequence[Claim]) -> list[Row]:
    """Return one row a claim, in order. Raises ReviewError."""
    found = {(r.problem, r.solution["name"]): r for r in run.solutions()}
    known = labels.of_run(run)
    reasons = {
        (record.get("problem"), record["solution"]): record["reason"]
        for record in unevaluated.pending(run.results, run.unevaluated)
    }
    return [_row(run, claim, found.get((claim.problem, claim.solution)), known, reasons) for claim in claimed]


def _row(run: Run, claim: Claim, result: Result | None, known: dict, reasons: dict) -> Row:
    key = claim.problem, claim.solution
    if result is None:
        return Row(claim, None, why=reasons.get(key, "the run has no result of it"))
    if claim.sha256 and result.solution["sha256"] != claim.sha256:
        return Row(claim, None, why="the run has a result of another content of this file")
    if claim.over in result.baselines:
        result = led_by(result, claim.over)
    label = known.get(key, NONE)
    return Row(claim, result, label, traits(run, result, claim, label))
