"""Temporary folders of processes that were killed: removed, and no others."""

import contextlib
import os
import signal
import subprocess
import sys
import time
import types
from pathlib import Path

import pytest

from harness.compile.cache import Cache
from harness.process import owned_folders
from harness.process.owned_folders import (
    PREFIX,
    KeptFolders,
    disk_use,
    make_folder,
    remove_tree,
    remove_unheld,
    scratch,
    sweep,
)
from harness.process.procfs import descendants

ROOT = Path(__file__).parents[3]


def test_a_folder_goes_when_its_owner_is_gone_and_not_before(tmp_path):
    code = (
        "import sys; from pathlib import Path; from harness.process.owned_folders import make_folder\n"
        "folder, _ = make_folder(Path(sys.argv[1])); (folder / 'file').touch(); folder.chmod(0)\n"
        "print(folder, flush=True); sys.stdin.read()"
    )
    owner = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    folder = Path(owner.stdout.readline().strip())
    sweep(tmp_path, young_s=0)
    assert folder.exists()
    owner.kill()
    owner.wait()
    sweep(tmp_path)
    assert folder.exists(), "it is young: its owner may not have locked it yet"
    sweep(tmp_path, young_s=0)
    assert not folder.exists()


def test_folders_of_others_and_links_stay(tmp_path):
    other, kept = tmp_path / "kb-something", tmp_path / "kept"
    other.mkdir()
    kept.mkdir()
    (kept / "file").touch()
    (tmp_path / "kb-scratch-link").symlink_to(kept)
    sweep(tmp_path, young_s=0)
    assert other.exists() and (kept / "file").exists()


def test_work_of_a_killed_build_and_folders_of_entries_that_never_came_go(tmp_path):
    cache = Cache(tmp_path / "cache")
    mine, lock = make_folder(cache.root / "work")
    abandoned = cache.root / "work" / "kb-scratch-abandoned"
    abandoned.mkdir()
    empty, used = cache.root / "entries" / "ab", cache.private_folder("used")
    empty.mkdir()
    (used / "kernel").touch()
    never = cache.private_folder("never")
    for folder in (empty, used, never):
        os.utime(folder, (time.time() - 9000,) * 2)
    sweep(cache.root / "work", young_s=0)
    cache.sweep()
    assert mine.exists() and not abandoned.exists()
    assert used.exists() and not empty.exists() and not never.exists()
    os.close(lock)


@pytest.mark.slow
def test_a_fork_server_removes_what_its_workers_wrote_where_their_owner_was_killed(tmp_path):
    code = (
        "import os, sys\nfrom harness.process.fork_server import ForkServer\n"
        "server = ForkServer()\nworker = server.fork({}, 1 << 30)\n(worker.scratch / 'litter').touch()\n"
        "print(worker.scratch, flush=True); sys.stdin.read()"
    )
    owner = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    scratch = Path(owner.stdout.readline().strip())
    family = descendants(owner.pid)
    assert (scratch / "litter").exists() and len(family) == 3
    os.kill(owner.pid, signal.SIGKILL)
    owner.wait()
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and (scratch.exists() or any(os.path.exists(f"/proc/{pid}") for pid in family)):
        time.sleep(0.05)
    assert not scratch.exists() and not any(os.path.exists(f"/proc/{pid}") for pid in family)


def test_a_scratch_folder_goes_with_its_use():
    with scratch() as folder:
        (folder / "file").write_text("x")
        assert folder.name.startswith(PREFIX)
    assert not folder.exists()


def test_files_are_counted_with_the_bytes_that_they_take(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").write_bytes(bytes(10_000))
    use = disk_use(tmp_path, most=10)
    assert use.files == 2 and 10_000 <= use.bytes < 100_000 and not use.hidden


def test_a_folder_counts_with_what_names_take_in_it(tmp_path):
    """Folders that were emptied again held 14 MB each, as much as anybody wanted in all."""
    folder = tmp_path / "emptied"
    folder.mkdir()
    (tmp_path / "file").touch()
    names = [folder / f"{number:0250}" for number in range(2000)]
    for name in names:
        os.link(tmp_path / "file", name)
    for name in names:
        name.unlink()
    assert disk_use(tmp_path, most=10).bytes == (folder.stat().st_blocks + (tmp_path / "file").stat().st_blocks) * 512


def nested(root, depth):
    """Folders in folders, with names so long that their path is longer than the system takes."""
    code = (
        "import os, sys\nos.chdir(sys.argv[1])\n"
        "for _ in range(int(sys.argv[2])): os.mkdir('d' * 200); os.chdir('d' * 200)\n"
        "open('file', 'wb').write(bytes(10_000))"
    )
    subprocess.run([sys.executable, "-c", code, root, str(depth)], check=True)


def test_folders_are_counted_however_long_their_path_is(tmp_path):
    nested(tmp_path, 60)
    use = disk_use(tmp_path, most=100)
    assert use.files == 61 and use.bytes >= 10_000 and not use.hidden


def test_folders_that_are_nested_too_deep_are_told(tmp_path):
    nested(tmp_path, 1500)
    use = disk_use(tmp_path, most=100_000)
    assert use.files == 65 and "more than 64 deep" in use.hidden
    remove_tree(tmp_path)
    assert not tmp_path.exists()


def test_folders_that_nobody_may_read_are_told(tmp_path, monkeypatch):
    (tmp_path / "folder").mkdir()
    opened = os.open

    def refused(path, *flags, **options):
        if path == "folder":  # as for users other than root
            raise PermissionError(path)
        return opened(path, *flags, **options)

    monkeypatch.setattr("harness.process.owned_folders.os.open", refused)
    assert "nobody may read" in disk_use(tmp_path, most=10).hidden


def test_a_folder_goes_whatever_is_in_it(tmp_path):
    root, outside = tmp_path / "root", tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("x")
    deep = root
    for _ in range(60):
        deep = deep / "d"
    deep.mkdir(parents=True)
    (deep / "file").write_text("x")
    (root / "link").symlink_to(outside)
    os.mkfifo(root / "pipe")
    deep.chmod(0)
    remove_tree(root)
    assert not root.exists() and (outside / "kept").exists()


def test_a_folder_that_becomes_a_link_while_it_is_removed_is_not_followed(tmp_path, monkeypatch):
    """Two workers had one folder of a language's cache: the second put a link there while the first was cleared up."""
    victim, root, listed = tmp_path / "documents", tmp_path / "kept", os.scandir
    for folder in (victim, root / "sub"):
        folder.mkdir(parents=True)
        (folder / "file").write_text("mine")
    victim.chmod(0o750)

    def list_and_swap(place):
        entries = listed(place)
        if (root / "sub").is_dir() and not (root / "sub").is_symlink():
            kept = list(entries)
            (root / "sub").rename(root / "moved")
            (root / "sub").symlink_to(victim)
            return contextlib.nullcontext(kept)
        return entries

    monkeypatch.setattr(os, "scandir", list_and_swap)
    remove_tree(root)
    monkeypatch.undo()
    assert (victim / "file").read_text() == "mine" and victim.stat().st_mode & 0o777 == 0o750
    remove_tree(root)
    assert not root.exists() and (victim / "file").exists()


@pytest.mark.parametrize("free, stays", [(10 << 20, True), (1 << 20, False)])
def test_a_kept_folder_has_at_most_an_eighth_of_what_is_free(tmp_path, monkeypatch, free, stays):
    """Candidate after candidate filled the disk of a cache, and the run ended."""
    folder = tmp_path / "kept"
    folder.mkdir()
    (folder / "file").write_bytes(bytes(1 << 20))
    monkeypatch.setattr(owned_folders.shutil, "disk_usage", lambda _: types.SimpleNamespace(free=free))
    files, size = KeptFolders([folder], tmp_path).close()
    assert folder.exists() == stays and (size == 0) == stays and (files == 0) == stays


def test_a_kept_folder_is_removed_only_where_nobody_has_it(tmp_path):
    folder = tmp_path / "kept"
    folder.mkdir()
    with contextlib.closing(KeptFolders([folder], tmp_path)):
        assert not remove_unheld(folder) and folder.exists()
    assert not remove_unheld(folder, overgrown=True) and folder.exists()
    assert remove_unheld(folder) and not folder.exists() and not remove_unheld(folder)
