"""The labels of a review, and which of them keep a result.

As in the paper that proposed them: `no_issues` and `minor_issues` are accepted, the
others are excluded from filtered figures; library-only wins over all, because
then there is no kernel to review.
"""

from __future__ import annotations

from harness.result import Result
from kernelbench.review.record import Review

NO_ISSUES, MINOR_ISSUES, GAMING = "no_issues", "minor_issues", "gaming"
# What a reviewer may answer -> the categories of that answer.
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
ORIGINAL_GAMING, INHERITED_GAMING, LIBRARY_ONLY = "original_gaming", "inherited_gaming", "library_only"
ACCEPTED = (NO_ISSUES, MINOR_ISSUES)
LIBRARY_ONLY_RULE = "library_only"


def labels(results: list[Result], reviews: list[Review]) -> dict[tuple[str, str], str]:
    """(problem, solution) -> label, for what was reviewed or is library-only.

    Attempts on a problem follow each other by sample number. Gaming is inherited
    where an earlier attempt already did the same, of whichever kind of it.
    """
    answers = {(r.problem, r.solution, r.sha256): r for r in reviews}
    seen: set[tuple[str, str]] = set()  # problem and category
    found = {}
    for result in sorted(results, key=lambda r: (r.problem, r.solution["sample"])):
        key = result.problem, result.solution["name"]
        review = answers.get((*key, result.solution["sha256"]))
        if result.rule == LIBRARY_ONLY_RULE:
            found[key] = LIBRARY_ONLY
        elif review and review.answer == GAMING:
            found[key] = INHERITED_GAMING if (result.problem, review.category) in seen else ORIGINAL_GAMING
            seen.add((result.problem, review.category))
        elif review:
            found[key] = review.answer
    return found
