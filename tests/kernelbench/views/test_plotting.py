"""Pictures: what decides how they are drawn."""

import subprocess
import sys

import pytest

pytest.importorskip("matplotlib", reason="pictures need kernelbench[report]")


def test_settings_in_the_working_directory_are_not_read(tmp_path):
    """It may be a checkout of others; what is wrong there was told to the terminal as it is."""
    (tmp_path / "matplotlibrc").write_text("\x1b[2J.x: 1\nlines.linewidth: 77\n")
    code = "from kernelbench.views.plotting import pyplot; print(pyplot('a').rcParams['lines.linewidth'])"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("1.5\n", "")
