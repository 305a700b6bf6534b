"""Traits of a kernel that explain a claimed speedup: each with the evidence, from record and source.

A kernel may have several. They say how a kernel is made, not whether that is wrong: reduced precision within the
tolerance and CUDA graphs are honest, and still no faster kernel under the same conditions.
"""

from __future__ import annotations

import hashlib
from typing import Any

from harness.isolated_call import ApartError, TooMuch, apart
from harness.result import Result
from kernelbench.formats.claims import Claim
from kernelbench.metrics import outcomes
from kernelbench.review.labels import Label
from kernelbench.run import Run
from kernelbench.run_files.sources import reference_of, source_of

UNCHANGED, LIBRARY_ONLY, REDUCED_PRECISION = "unchanged", "library_only", "reduced_precision"
GRAPH_REPLAY, MEMORY_FORMAT, OTHER_SIZES = "graph_replay", "memory_format", "other_sizes"
OWN_KERNELS = "own_kernels"  # none of those that say where else the speed comes from
TRAITS = (UNCHANGED, LIBRARY_ONLY, REDUCED_PRECISION, GRAPH_REPLAY, MEMORY_FORMAT, OTHER_SIZES)

_OF_RULE = {"lower_precision": REDUCED_PRECISION, "cuda_graph": GRAPH_REPLAY, "memory_format": MEMORY_FORMAT}
_PRECISION_SETTINGS = ("tf32", "matmul_precision", "reduced_precision")  # in the name of a global setting
_PUBLISHED = "full"
_SAME: dict[tuple[bytes, ...], bool] = {}  # by the digests of two sources


def traits(run: Run, result: Result, claim: Claim, label: Label) -> dict[str, str]:
    """Return the traits of a result with their evidence, in the order of ``TRAITS``."""
    found = _of_findings(result.integrity.get("findings", []))
    if _is_unchanged(run, result):
        found[UNCHANGED] = "its classes and functions are the reference's"
    if label.band == outcomes.LIBRARY_ONLY:
        found[LIBRARY_ONLY] = label.reason
    elif result.solution.get("language") == "pytorch":
        found[LIBRARY_ONLY] = "its source builds no kernel of its own"
    if reason := _other_sizes(run, result, claim):
        found[OTHER_SIZES] = reason
    return {name: found[name] for name in TRAITS if name in found}


def _of_findings(findings: list[dict[str, Any]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for finding in findings:
        code = str(finding.get("code", ""))
        trait = _OF_RULE.get(finding.get("rule", ""))
        if finding.get("rule") == "global_settings" and any(word in code.lower() for word in _PRECISION_SETTINGS):
            trait = REDUCED_PRECISION
        if trait:
            found.setdefault(trait, f"line {finding.get('line')}: {code}")
    return found


def _is_unchanged(run: Run, result: Result) -> bool:
    source, reference = source_of(run, result), reference_of(run, result.problem)
    if result.solution.get("kind") != "py" or source is None or reference is None:
        return False
    key = tuple(hashlib.sha256(text.encode(errors="surrogatepass")).digest() for text in (source, reference["source"]))
    if key not in _SAME:  # many results may be of one source, which takes long to parse
        try:
            _SAME[key] = apart("harness.integrity.static.sameness:is_same", source, reference["source"])
        except (TooMuch, ApartError):
            _SAME[key] = False
    return _SAME[key]


def _other_sizes(run: Run, result: Result, claim: Claim) -> str:
    """Return why the claim is of other sizes than the measurement; '' where it is not, or nobody knows."""
    names = [part.workload.get("name") for part in getattr(result, "parts", [result])]
    if names != [_PUBLISHED]:
        return f"measured on workload {', '.join(map(str, names))}"
    reference = reference_of(run, result.problem)
    if not claim.reference_sha256 or reference is None:
        return ""
    digest = hashlib.sha256(reference["source"].encode()).hexdigest()
    return "" if digest == claim.reference_sha256 else "measured on another definition of the problem than the claim's"
