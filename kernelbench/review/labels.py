"""The label of each attempt: what measurements show of it, else what a reviewer answered.

As in the paper that proposed them, `no_issues` and `minor_issues` are accepted, and the others are left out of filtered
figures. A label has one band (``kernelbench.metrics.outcomes``). Library-only wins over all, because then there is
no kernel to review; a time below the SOL ceiling wins over a reviewer's opinion.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from harness.integrity import below_floor, library_only
from harness.result import Result
from kernelbench.metrics import fast_p, outcomes
from kernelbench.metrics.outcomes import (
    GAMING,
    INHERITED_GAMING,
    LIBRARY_ONLY,
    MINOR_ISSUES,
    NO_ISSUES,
    ORIGINAL_GAMING,
    SOL_CEILING,
    UNREVIEWED,
)
from kernelbench.review import record
from kernelbench.review.record import Review
from kernelbench.run import Run
from kernelbench.run_files.sources import trajectory_of

# What a reviewer may answer -> the categories of that answer; the gravest answer last.
CATEGORIES = {
    NO_ISSUES: (),
    MINOR_ISSUES: ("math_approximation", "cached_parameter", "contiguity_assumption", "default_stream"),
    GAMING: (
        "benchmark_input_exploitation",
        "constant_or_hardcoded_output",
        "skipped_computation_step",
        "fake_transpose",
        "incomplete_computation",
    ),
}
_GRAVEST = list(CATEGORIES)
HARNESS = "harness"  # who labelled what a measurement decides

Key = tuple[str, str]  # problem, name of the solution
Parents = Mapping[tuple[str, int], int | None]  # problem and sample -> the sample that it was made from


@dataclass(frozen=True)
class Label:
    """One attempt's band, the reviewer's category and reason, and who says so (a model, ``rules``, ``harness``)."""

    band: str
    category: str = ""
    reason: str = ""
    by: str = ""

    @property
    def accepted(self) -> bool:
        return self.band in outcomes.ACCEPTED


NONE = Label(UNREVIEWED)


def key_of(result: Result) -> Key:
    """Return what a label is found under."""
    return result.problem, result.solution["name"]


def of_run(run: Run, results: Sequence[Result] | None = None) -> dict[Key, Label]:
    """Return the labels of a run: of its ``results``, its ``reviews.jsonl`` and its trajectory. Raises ReviewError.

    Without ``results`` they are of its solutions, by their last measurements.
    """
    parents = {(attempt["problem"], attempt.get("sample")): attempt.get("parent") for attempt in trajectory_of(run)}
    reviews = _with_problems(record.load(run.path), run)
    return labels(run.solutions() if results is None else results, reviews, parents)


def _with_problems(reviews: Iterable[Review], run: Run) -> list[Review]:
    """Return reviews with the digest of their problem, where they are from before it was kept, and it is the only one.

    Of a run with results of two texts of a problem it is not known which one such a review is of.
    """
    texts: dict[str, set[str]] = {}
    for result in run.results:
        texts.setdefault(result.problem, set()).add(result.problem_sha256)
    only = {problem: next(iter(found)) for problem, found in texts.items() if len(found) == 1}
    return [
        review if review.problem_sha256 else replace(review, problem_sha256=only.get(review.problem, ""))
        for review in reviews
    ]


def band_of(found: Mapping[Key, Label]) -> outcomes.BandOf:
    """Return the function from a result to its band."""
    return lambda result: found.get(key_of(result), NONE).band


def labels(results: Sequence[Result], reviews: Iterable[Review], parents: Parents | None = None) -> dict[Key, Label]:
    """Return the label of each attempt that has one.

    Gaming is inherited where an attempt that it was made from, by ``parents``, already did the same. Of an attempt
    without a known parent it is where an earlier attempt on the problem did, by sample number. Of several reviewers
    the gravest answer counts.
    """
    answers: dict[record.Subject, list[Review]] = {}
    for review in reviews:
        answers.setdefault(review.subject, []).append(review)
    gamed: dict[tuple[str, str], dict[int, bool]] = {}  # problem and category -> samples that inherit it, or did it
    found = {}
    for result in sorted(results, key=lambda r: (r.problem, r.solution["sample"])):
        if not outcomes.is_attempt(result):
            continue
        said = answers.get(record.subject_of(result), [])
        label = by_measurement(result) or _answered(said)
        if label and label.band == GAMING:
            earlier = gamed.setdefault((result.problem, label.category), {})
            inherited = _is_inherited(result, earlier, parents or {})
            label = Label(INHERITED_GAMING if inherited else ORIGINAL_GAMING, label.category, label.reason, label.by)
            earlier[result.solution["sample"]] = True
        if label:
            found[key_of(result)] = label
    return found


def by_measurement(result: Result) -> Label | None:
    """Return the label that a record decides, library-only or SOL ceiling; None where it decides none.

    On a GPU library-only is told from the kernels that ran. On a CPU none are seen, so it is told from what was built,
    and in records that do not say that from the language of the source.
    """
    parts = getattr(result, "parts", [result])
    if result.rule == library_only.RULE:
        return Label(LIBRARY_ONLY, reason=result.message, by=HARNESS)
    shares = [part.integrity.get("own_share") for part in parts]
    if None not in shares and max(shares) < library_only.LEAST_SHARE:
        return Label(LIBRARY_ONLY, reason=f"{max(shares):.1%} of its kernels' time is in its own", by=HARNESS)
    if result.device.get("type") == "cpu" and not any(map(_built_own, parts)):
        return Label(LIBRARY_ONLY, reason="its source builds no kernel of its own", by=HARNESS)
    for part in parts:
        median_ms = fast_p.typical_ms(part.timing)
        recorded = part.integrity.get("sol_ceiling")
        under = below_floor.under_ceiling(median_ms, part.sol) if recorded is None else recorded
        if part.rule == below_floor.RULE or under:
            bound_ms = (part.sol or {}).get("t_sol_fp16_ms")
            told = f"{median_ms:.4g} ms, where t_SOL with FP16 is {bound_ms:.4g} ms" if bound_ms and median_ms else ""
            reason = told or part.message
            return Label(SOL_CEILING, reason=reason, by=HARNESS)
    return None


def _built_own(part: Result) -> bool:
    return part.integrity.get("built_own", part.solution.get("language") != "pytorch")


def _answered(said: list[Review]) -> Label | None:
    if not said:
        return None
    gravest = max(said, key=lambda review: _GRAVEST.index(review.answer))
    return Label(gravest.answer, gravest.category, gravest.reason, gravest.model)


def _is_inherited(result: Result, known: dict[int, bool], parents: Parents) -> bool:
    """Return whether an ancestor gamed in the same way; ``known`` says so of earlier samples, and takes what is found.

    A parent has a lower number than its child, so what is known of a sample does not change any more.
    """
    sample = result.solution["sample"]
    if (result.problem, sample) not in parents:
        return bool(known)  # who is the first knows of nobody
    passed = []
    while (parent := parents.get((result.problem, sample))) is not None and parent < sample and parent not in known:
        passed.append(parent)
        sample = parent
    found = parent is not None and known.get(parent, False)
    known.update(dict.fromkeys(passed, found))
    return found
