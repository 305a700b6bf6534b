"""Logs for tests of views: results with samples around given times, as a run directory."""

import contextlib
import errno
import json
import math
import os
import random
import resource

from harness.result import Result, Status
from kernelbench.run import Run

CONFIGURATION = {
    "solutions": "s", "problem_dir": None, "problems": None, "workload": None, "precision": "fp32", "device": "cpu",
}  # fmt: skip


NO_LOGS = ("a pipe", "a device without end", "a terabyte of nothing")


def no_log(path, kind):
    """Put one of ``NO_LOGS`` in the place of a log: reading it would take for ever, or all memory."""
    path.unlink(missing_ok=True)
    if kind == "a pipe":
        os.mkfifo(path)
    elif kind == "a device without end":
        path.symlink_to("/dev/zero")
    else:
        path.touch()
        os.truncate(path, 1 << 40)


def no_room(monkeypatch):
    """Let the disk be full for the rest of a test."""

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)


@contextlib.contextmanager
def short_files(most):
    """Let no file have more than ``most`` bytes: what writes a longer one fails as on a full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def timing(median_ms, seed=0, count=51, spread=0.01):
    """Statistics of samples whose median is about ``median_ms``."""
    draw = random.Random(seed)
    samples = sorted(median_ms * math.exp(draw.gauss(0, spread)) for _ in range(count))
    mean = sum(samples) / count
    std = math.sqrt(sum((s - mean) ** 2 for s in samples) / (count - 1))
    return {
        "median_ms": samples[count // 2], "mean_ms": mean, "std_ms": std, "min_ms": samples[0],
        "max_ms": samples[-1], "samples": count, "samples_ms": samples,
    }  # fmt: skip


def result(problem, ms=None, *, status=Status.OK, sample=0, name=None, seed=0, baseline_ms=1.0, **fields):
    """A result of ``problem``: timed at ``ms``, or failed with ``status``."""
    solution = {
        "name": name or f"level{problem}_s{sample}.py", "sample": sample, "kind": "py",
        "language": "pytorch", "sha256": str(seed),
    }  # fmt: skip
    made = Result(problem, "own", {"name": "small"}, solution, status, device={"type": "cpu", "name": "cpu"}, **fields)
    if ms is not None:
        made.timing, made.baselines = timing(ms, 2 * seed), {"eager": timing(baseline_ms, 2 * seed + 1)}
        made.speedup = made.baselines["eager"]["median_ms"] / made.timing["median_ms"]
    return made


def judged(problem, speedup, *, verdict=None, half=0.01, **fields):
    """A result as the judge records it: a speedup with its interval, relative on either side, and its verdict."""
    made = result(problem, 1.0 / speedup, **fields)
    low, high = speedup * (1 - half), speedup * (1 + half)
    found = "faster" if low > 1 else "slower" if high < 1 else "tie"
    made.speedup = speedup
    made.baselines["eager"] |= {"speedup": speedup, "interval": [low, high], "verdict": verdict or found}
    return made


def run(path, *results, **configuration):
    made = Run.create(path, CONFIGURATION | configuration)
    for one in results:
        made.append(one)
    return made


def rewritten(made):
    """The run again, from a log of what its results say now."""
    lines = [json.dumps(one.to_json()) for one in made.results]
    (made.path / "results.jsonl").write_text("\n".join(lines) + "\n")
    return Run.load(made.path)
