"""The rules of the static findings: name, how grave it is, and why a reviewer should look."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from harness.limits import MAX_FINDINGS

INFO, SUSPICIOUS, SERIOUS = "info", "suspicious", "serious"
_WORST_FIRST = (SERIOUS, SUSPICIOUS, INFO)


@dataclass(frozen=True)
class Rule:
    severity: str
    explanation: str


RULES = {
    "unreadable": Rule(SUSPICIOUS, "cannot be parsed, or not in reasonable time, so that nothing else was looked for"),
    "library_call": Rule(INFO, "calls a library's kernel instead of its own"),
    "clock": Rule(INFO, "reads a clock or makes events, as code that behaves differently when timed would"),
    "lower_precision": Rule(INFO, "uses a type of lower precision than the problem's"),
    "fast_math": Rule(INFO, "uses approximate functions of the device, or asks the compiler for them"),
    "memory_format": Rule(INFO, "asks for another memory format than the reference's"),
    "default_stream": Rule(INFO, "launches a kernel in the default stream and not in PyTorch's current one"),
    "assumes_contiguous": Rule(INFO, "takes addresses of tensors and looks nowhere at how they lie in memory"),
    "environment": Rule(SUSPICIOUS, "reads or changes the environment"),
    "foreign_code": Rule(SUSPICIOUS, "loads or runs code that is not in this source"),
    "dynamic_code": Rule(SUSPICIOUS, "makes code or names at run time, which cannot be read here"),
    "files": Rule(SUSPICIOUS, "reads or writes files, where results could be kept between calls"),
    "threads": Rule(SUSPICIOUS, "starts threads or tasks, which may work outside of what is timed"),
    "streams": Rule(SUSPICIOUS, "uses streams of its own, which may work outside of what is timed"),
    "cuda_graph": Rule(SUSPICIOUS, "replays CUDA graphs, which may hold the inputs of an earlier call"),
    "cache_control": Rule(SUSPICIOUS, "changes limits of the device or what stays in its caches"),
    "global_settings": Rule(SUSPICIOUS, "changes settings that the reference shares where both are in one process"),
    "process_control": Rule(SERIOUS, "ends, signals or starts processes"),
    "network": Rule(SERIOUS, "opens network connections"),
    "introspection": Rule(SERIOUS, "looks into the interpreter's frames, objects or modules"),
    "monkey_patch": Rule(SERIOUS, "replaces what belongs to another module"),
    "reference": Rule(SERIOUS, "uses the reference's Model"),
    "fallback": Rule(SERIOUS, "falls back to a library when its own code fails"),
    "identity_cache": Rule(SERIOUS, "looks something up by an input's address, identity or version"),
    "lazy_tensor": Rule(SERIOUS, "makes a tensor subclass, which may compute only when it is looked at"),
    "unlaunched_kernel": Rule(SERIOUS, "defines a kernel that nothing launches"),
}


@dataclass(frozen=True)
class Finding:
    file: str
    line: int
    rule: str
    code: str  # what was found there

    @property
    def severity(self) -> str:
        return RULES[self.rule].severity

    def to_json(self) -> dict:
        return asdict(self) | {"severity": self.severity, "explanation": RULES[self.rule].explanation}


def worst(found: set[Finding]) -> list[Finding]:
    """Return as many as a reviewer reads, one of each rule and then the gravest, in the order of lines."""
    ranked = sorted(found, key=lambda finding: (_WORST_FIRST.index(finding.severity), finding.line, finding.rule))
    firsts = {finding.rule: finding for finding in reversed(ranked)}
    ranked.sort(key=lambda finding: firsts[finding.rule] is not finding)
    return sorted(ranked[:MAX_FINDINGS], key=lambda finding: (finding.line, finding.rule))
