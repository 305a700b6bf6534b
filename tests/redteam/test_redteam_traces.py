"""Traces of the red team's programs, looked for on a machine where others are at work."""

import contextlib

from harness.compile.cache import Cache
from harness.process.owned_folders import KeptFolders
from kernelbench.redteam import traces


def test_a_folder_that_a_process_has_is_no_trace_and_stays(tmp_path, monkeypatch):
    """`kb redteam` took the kernels of a candidate that another process was timing."""
    monkeypatch.setenv("KERNELBENCH_CACHE", str(tmp_path))
    folder = Cache().private_folder("key")
    for number in range(4):
        (folder / str(number)).touch()
    find = traces.kept_files(3)
    with contextlib.closing(KeptFolders([folder], tmp_path)):
        assert find() == [] and len(list(folder.iterdir())) == 4
    assert find() == [f"{folder} with more than 3 files"] and not folder.exists()
    assert find() == []
