"""Evaluations for benchmarks: each in a ``kb eval`` process of its own, records back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(_ROOT))


def evaluate(folder: Path, *options: str, cache: Path | None = None) -> list[dict]:
    """The records of ``kb eval --solutions folder``, with a cache of its own if need be; exits where it fails."""
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-m", "kernelbench", "eval", "--solutions", folder, "--out", out]
        command += options
        environment = {**os.environ, "PYTHONPATH": str(_ROOT)}
        environment |= {"KERNELBENCH_CACHE": str(cache)} if cache else {}
        done = subprocess.run(list(map(str, command)), cwd=_ROOT, env=environment, capture_output=True, text=True)
        log = Path(out) / "results.jsonl"
        if done.returncode or not log.exists():
            sys.exit(f"{' '.join(map(str, command))}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
        return [json.loads(line) for line in log.read_text().splitlines()]


def write_references(folder: Path, selector: str, samples: int = 1) -> None:
    """The reference of each problem as a solution, several times over if need be."""
    from kernelbench import starter, suite

    folder.mkdir(parents=True, exist_ok=True)
    for file in suite.find(selector):
        lines = starter.source(str(file.id), "py").splitlines()
        source = "\n".join(line for line in lines if "kb: problem=" not in line) + "\n"
        for sample in range(samples):
            name = f"level_{file.id.level}_problem_{file.id.number}_sample_{sample}_kernel.py"
            (folder / name).write_text(f"# copy {sample}\n{source}")


RELU = """import torch, torch.nn as nn
class {name}(nn.Module):
    def forward(self, x): return torch.relu(x)
def get_inputs(): return [torch.rand({elements})]
def get_init_inputs(): return []
"""


def evaluate_relus(sizes: list[str]) -> list[dict]:
    """Records of one vendor kernel, evaluated against itself, on inputs of so many Mi floats."""
    with tempfile.TemporaryDirectory() as folder:
        problems, solutions = Path(folder, "problems", "level1"), Path(folder, "solutions")
        problems.mkdir(parents=True)
        solutions.mkdir()
        for number, size in enumerate(sizes, start=1):
            elements = round(float(size) * 2**20)
            name = f"relu_{elements}"
            (problems / f"{number:03}_{name}.py").write_text(RELU.format(name="Model", elements=elements))
            source = RELU.format(name="ModelNew", elements=elements)
            (solutions / f"level_1_problem_{number}_sample_0_kernel.py").write_text(f"# {name}\n{source}")
        return evaluate(solutions, "--allow-library", "--problem-dir", str(problems.parent))


def evaluate_references(selector: str, workload: str | None = None, samples: int = 1) -> list[dict]:
    """Records of the references of a selection, evaluated against themselves."""
    with tempfile.TemporaryDirectory() as folder:
        write_references(Path(folder), selector, samples)
        return evaluate(Path(folder), "--allow-library", *(["--workload", workload] if workload else []))
