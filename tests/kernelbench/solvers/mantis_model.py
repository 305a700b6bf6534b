"""A model that plays its part in MANTIS: by the phase that a conversation asks for, with answers of every quality."""

import json

from candidates import RIGHT, answer

ANALYSIS = {"bottlenecks": [{"name": "memory", "evidence": "one read, one write"}], "summary": "It is memory-bound."}
SUMMARY = {"lessons": ["Elementwise: clamp in one pass."], "next": "vectorise"}


def hypotheses(*rated):
    """Hypotheses of (name, speedup, implementation risk, performance risk)."""
    keys = ("name", "expected_speedup", "implementation_risk", "performance_risk")
    return {"hypotheses": [dict(zip(keys, one)) | {"cause": "traffic", "change": f"do {one[0]}"} for one in rated]}


NOMINATED = hypotheses(("fuse", 1.2, 1, 1), ("tile", 3.0, 2, 1.5), ("rewrite", 9.0, 5, 5))


def phase_of(request):
    """What a conversation asks for, by the words of our prompts."""
    asked = next(m["content"] for m in request["messages"] if m["role"] == "user")
    for words, phase in [
        ("Attribute the gap", "analyze"), ("Nominate ", "nominate"), ("An iteration has ended", "summarize"),
        ("Implement this hypothesis", "implement"),
    ]:  # fmt: skip
        if words in asked:
            return phase
    return "turn"


def said(data):
    return f"Here:\n\n```json\n{json.dumps(data)}\n```\n"


def model(request, number):
    """A sound answer to every phase."""
    phase = phase_of(request)
    data = {"analyze": ANALYSIS, "nominate": NOMINATED, "summarize": SUMMARY}.get(phase)
    if data:
        return said(data)
    return RIGHT if number % 2 else answer(f"x.clamp(min=0) + {number} * 0")
