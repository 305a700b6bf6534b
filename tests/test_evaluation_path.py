"""One evaluation can be followed through few files: scripts/evaluation_path.py traces a real one."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / "scripts" / "evaluation_path.py"


@pytest.mark.slow
def test_one_evaluation_passes_through_few_files(tmp_path):
    subprocess.run([sys.executable, SCRIPT, "--json", tmp_path / "path.json"], check=True, stdout=subprocess.DEVNULL)
    found = json.loads((tmp_path / "path.json").read_text())
    main, judge = found["main process"], found["judge"]
    assert {"kernelbench/cli/evaluate/eval.py", "kernelbench/evaluation/local_executor.py"} <= main["files"].keys()
    assert {"harness/judge/evaluate.py", "harness/judge/cross_check/check.py"} <= judge["files"].keys()
    assert len(main["files"]) < 20 and main["steps"] < 60
    assert len(judge["files"]) < 25 and judge["steps"] < 120
