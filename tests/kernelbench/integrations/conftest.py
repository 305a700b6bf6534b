"""A stand-in for the model, and the examples as programs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT / "scripts"), str(Path(__file__).parent)]


@pytest.fixture
def example(tmp_path):
    """Run a script of scripts/integrations/ as a user does; return its standard output."""

    def run(name, *arguments, **environment):
        command = [sys.executable, str(ROOT / "scripts" / "integrations" / name), *map(str, arguments)]
        # without a GPU: the stand-in's kernels are for any device, and their build must not depend on the machine
        env = os.environ | {"PYTHONPATH": str(ROOT), "OPENAI_API_KEY": "none", "CUDA_VISIBLE_DEVICES": ""} | environment
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=400)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
        return done.stdout

    return run
