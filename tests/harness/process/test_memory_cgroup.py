"""A control group for a worker's memory, in a folder that stands for the kernel's where this machine gives none."""

import pytest

from harness.faults import MachineFault
from harness.process import memory_cgroup
from harness.process.fork_server import ForkServer
from harness.process.memory_cgroup import MemoryGroup
from harness.result import CandidateFailure, Status


@pytest.fixture
def parent(tmp_path, monkeypatch):
    (tmp_path / "cgroup.subtree_control").write_text("cpu memory pids\n")
    monkeypatch.setattr(memory_cgroup, "usable_parent", lambda: tmp_path)
    return tmp_path


def test_a_group_limits_memory_and_swap_and_ends_as_a_whole(parent):
    folder = memory_cgroup.make(5000).folder
    assert folder.parent == parent
    limits = {name: (folder / name).read_text() for name in ("memory.max", "memory.swap.max", "memory.oom.group")}
    assert limits == {"memory.max": "5000", "memory.swap.max": "0", "memory.oom.group": "1"}


def test_who_may_make_no_group_gets_none(monkeypatch, tmp_path):
    (tmp_path / "cgroup.subtree_control").write_text("cpu\n")
    assert not memory_cgroup._is_usable(tmp_path) and not memory_cgroup._is_usable(tmp_path / "missing")
    monkeypatch.setattr(memory_cgroup, "usable_parent", lambda: None)
    assert memory_cgroup.make(5000) is None


@pytest.mark.parametrize("events, told", [("oom 3\noom_kill 2\n", True), ("oom 3\noom_kill 0\n", False), ("", False)])
def test_the_kernel_tells_whether_memory_ran_out(tmp_path, events, told):
    (tmp_path / "memory.events").write_text(events)
    assert MemoryGroup(tmp_path, 5000).ran_out() == told


def test_a_worker_is_in_its_group_before_it_runs_anything_and_its_end_there_is_told(server, parent, tmp_path):
    path = tmp_path / "module.py"
    path.write_text("import os\nos._exit(1)")
    with server.fork({}, 1 << 30, readable=[path]) as worker:
        (worker._group.folder / "memory.events").write_text("oom_kill 1\n")
        with pytest.raises(CandidateFailure) as caught:
            worker.request({"op": "import", "solution": str(path)}, 20)
        assert (worker._group.folder / "cgroup.procs").read_text() == "0"
    assert caught.value.status is Status.OUT_OF_MEMORY


def test_a_worker_that_cannot_join_its_group_is_no_candidates_fault(server, parent, tmp_path, monkeypatch):
    def closed_to_it(limit_bytes):
        group = MemoryGroup(tmp_path, limit_bytes)
        (tmp_path / "cgroup.procs").mkdir()
        return group

    monkeypatch.setattr(memory_cgroup, "make", closed_to_it)
    (path := tmp_path / "module.py").write_text("")
    with pytest.raises(MachineFault, match="cannot be started or confined: IsADirectoryError"):
        with server.fork({}, 1 << 30, readable=[path]) as worker:
            worker.request({"op": "import", "solution": str(path)}, 20)


def test_a_group_goes_with_the_process_that_forks_workers_where_its_owner_was_killed(parent, tmp_path):
    """Each that was killed left one in the kernel's memory, until the machine started anew."""
    path = tmp_path / "module.py"
    path.write_text("class ModelNew: pass")
    with ForkServer() as server, server.fork({}, 1 << 30, readable=[path]) as worker:
        worker.request({"op": "import", "solution": str(path)}, 60)
        assert worker._group.folder.is_dir()
        server.close()  # so does the kernel with the socket of an owner that was killed
        assert not [path for path in parent.iterdir() if path.is_dir()]


@pytest.mark.parametrize("kills, status, killed_by", [(1, Status.OUT_OF_MEMORY, ""), (0, Status.CRASHED, "SIGKILL")])
def test_a_kill_at_the_limit_of_its_group_is_its_own_doing(server, parent, tmp_path, kills, status, killed_by):
    path = tmp_path / "module.py"
    path.write_text("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
    with pytest.raises(CandidateFailure) as caught, server.fork({}, 1 << 30, readable=[path]) as worker:
        (worker._group.folder / "memory.events").write_text(f"oom_kill {kills}\n")
        worker.request({"op": "import", "solution": str(path)}, 20)
    assert (caught.value.status, caught.value.killed_by) == (status, killed_by)
