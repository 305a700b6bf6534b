"""Output of a profiler is kept apart from that of its program."""

import stat
import sys

import pytest

from harness.worker.programs import run_profiler

TABLE = '"ID","Kernel Name","gpu__time_duration.sum"'
PROGRAM = """#!{python}
import sys
from pathlib import Path
Path(sys.argv[sys.argv.index("--log-file") + 1]).write_text("==PROF== the profiler's own")
print({printed!r})
sys.exit({status})
"""


@pytest.fixture
def profiler(tmp_path):
    def write(status):
        path = tmp_path / "ncu"
        path.write_text(PROGRAM.format(python=sys.executable, printed=f"{TABLE}\nTypeError: no", status=status))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return [str(path), "--csv"]

    return write


def test_the_log_is_what_the_profiler_wrote(profiler):
    assert run_profiler(profiler(0), "/", "{}") == {"code": 0, "log": "==PROF== the profiler's own"}


def test_where_it_failed_lines_of_the_program_follow_behind_a_mark(profiler):
    log = run_profiler(profiler(1), "/", "{}")["log"]
    assert log.splitlines() == ["==PROF== the profiler's own", f"| {TABLE}", "| TypeError: no"]
