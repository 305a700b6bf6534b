"""The environment that a judge's process is started with."""

import os
from pathlib import Path

import pytest

from harness.judge import main


class _Started(Exception):
    """The environment is complete."""


@pytest.mark.parametrize("variable", ["TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"])
def test_what_the_judge_compiles_lies_in_the_cache(tmp_path, monkeypatch, variable):
    """Triton's lay in the home, which may be read-only: then every evaluation failed."""

    def started():
        raise _Started

    monkeypatch.setenv("KERNELBENCH_CACHE", str(tmp_path))
    monkeypatch.setattr(main.forkserver, "warm_up", started)
    monkeypatch.setattr(os, "chdir", lambda folder: None)
    for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"):
        monkeypatch.setenv(name, "/elsewhere")
    with pytest.raises(_Started):
        main.serve(-1)
    assert Path(os.environ[variable]).parent == tmp_path
