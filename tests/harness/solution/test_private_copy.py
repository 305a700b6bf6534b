"""A private copy is what was discovered, whoever writes to the folder of solutions meanwhile."""

import errno
import os
from collections import Counter

import pytest

from harness.solution import private_copy
from harness.solution.discover import SolutionError, discover
from harness.solution.private_copy import Changed, private_copies
from harness.solution.visible_files import own_files

USES = "import torch\nfrom helper import answer\nNAMED = 'data/table.txt'\nclass ModelNew(torch.nn.Module): pass\n"


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "solutions"
    (root / "level1/data").mkdir(parents=True)
    (root / "level1/1_uses.py").write_text(USES)
    (root / "level1/helper.py").write_text("def answer(): return 1\n")
    (root / "level1/data/table.txt").write_text("1 2 3\n")
    (root / "level1/2_other.py").write_text("class ModelNew: pass\n")
    (root / "level1/notes.txt").write_text("of nobody\n")
    return root


def solution(folder, name="level1/1_uses.py"):
    return next(one for one in discover(folder).solutions if one.name == name)


def test_a_copy_has_the_solution_and_its_own_files_by_the_same_names_and_with_the_same_digests(folder):
    found = solution(folder)
    with private_copies() as copies:
        copy = copies.of(found)
        names = {path.relative_to(copy.root).as_posix() for path in copy.root.rglob("*") if path.is_file()}
        assert names == {"level1/1_uses.py", "level1/helper.py", "level1/data/table.txt"}
        assert (copy.name, copy.sha256, copy.helpers) == (found.name, found.sha256, found.helpers)
        assert [path.relative_to(copy.root.resolve()).as_posix() for path in own_files(copy)] == [
            "level1/1_uses.py", "level1/data/table.txt", "level1/helper.py",
        ]  # fmt: skip
        assert copies.of(found) is copy and copies.original(copy) == found
        assert not copy.root.is_relative_to(folder)
    assert not copy.root.exists()


def test_a_link_has_no_place_in_a_copy(folder):
    """By the name of a link a file was a header's compiled text, Python's code of a module, or its source to read."""
    (folder / "level1/__pycache__").mkdir()
    for link in ("helper.h", "x.h.gch", "again.py", "__pycache__/1_uses.cpython-311.pyc", ".env"):
        (folder / "level1" / link).symlink_to(folder / "level1/data/table.txt")
    (folder / "level1/self.h").symlink_to("1_uses.py")
    (folder / "level1/1_uses.py").write_text(USES + "LINKS = 'helper.h', 'x.h.gch', 'again.py', 'self.h'\n")
    with private_copies() as copies:
        root = copies.of(solution(folder)).root
        names = {path.relative_to(root).as_posix() for path in root.rglob("*") if not path.is_dir()}
    assert names == {"level1/1_uses.py", "level1/helper.py", "level1/data/table.txt"}


@pytest.mark.parametrize("file", ["1_uses.py", "helper.py", "data/table.txt"])
def test_what_was_written_since_it_was_discovered_is_not_copied(folder, file):
    found = solution(folder)
    path = folder / "level1" / file
    before = path.stat()
    path.write_bytes(path.read_bytes()[::-1])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with private_copies() as copies, pytest.raises(Changed, match="one of its files changed meanwhile"):
        copies.of(found)


def test_a_folder_that_became_a_link_leads_to_nobody_elses_file(folder, tmp_path):
    found = solution(folder)
    (folder / "level1").rename(tmp_path / "elsewhere")
    (folder / "level1").symlink_to(tmp_path / "elsewhere")
    with private_copies() as copies, pytest.raises(Changed):
        copies.of(found)
    with pytest.raises(SolutionError, match="no solutions"):  # nor is one discovered behind it
        discover(folder)


def test_a_pipe_in_the_place_of_a_file_keeps_nobody_waiting(folder):
    found = solution(folder)
    (folder / "level1/1_uses.py").unlink()
    os.mkfifo(folder / "level1/1_uses.py")
    with private_copies() as copies, pytest.raises(Changed):
        copies.of(found)


def test_all_names_of_a_file_and_all_solutions_share_one_copy_and_holes_stay_holes(folder):
    """A sparse gigabyte with thirty names was copied thirty times, and ended the run of all for want of room."""
    table = folder / "level1/data/table.txt"
    os.truncate(table, 64 << 20)
    with table.open("r+b") as file:
        for place in range(32):  # none of its megabytes is all zeros
            file.seek((place << 21) + 1)
            file.write(b"4")
    os.link(table, folder / "level1/data/second.txt")  # each name that a source gave was another copy
    (folder / "level1/3_uses.py").write_text(USES.replace("table", "second"))
    with private_copies() as copies:
        made = [copies.of(solution(folder, name)) for name in ("level1/1_uses.py", "level1/3_uses.py")]
        tables = [path for copy in made for path in (copy.root / "level1/data").iterdir()]
        assert len(tables) == 2 and len({path.stat().st_ino for path in tables}) == 1
        found = tables[0].stat()
        assert tables[0].read_bytes() == table.read_bytes() and found.st_blocks * 512 < 8 << 20


def test_a_solution_whose_files_have_no_room_leaves_it_to_the_others(folder, monkeypatch):
    first, other = solution(folder), solution(folder, "level1/2_other.py")
    with private_copies() as copies:

        def full(path, to, most=0):
            to.write_text("a part")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as patch, pytest.raises(OSError, match="No space left"):
            patch.setattr("harness.solution.private_copy._copy", full)
            copies.of(first)
        folders = copies.of(other).root.parent
        assert len(list(folders.iterdir())) == 1


def test_copies_take_half_of_the_room_and_leave_the_rest_to_builds(folder, monkeypatch):
    """One that named as much as the disk holds kept its neighbours from being built."""
    monkeypatch.setattr(private_copy, "free_bytes", lambda folder: 4 << 20)
    (folder / "level1/data/table.txt").write_bytes(b"1" * (1 << 20))
    (folder / "level1/helper.py").write_bytes(b"#" * ((1 << 20) - 5000))
    (folder / "level1/2_other.py").write_text("with open('notes.txt') as file: ...\nclass ModelNew: pass\n")
    (folder / "level1/notes.txt").write_bytes(b"2" * (1 << 20))
    first, other = solution(folder), solution(folder, "level1/2_other.py")
    with private_copies() as copies:
        assert copies.original(copies.of(first)) == first
        with pytest.raises(OSError, match="No space left"):
            copies.of(other)
        assert copies.of(first).path.is_file()
        copies.release()
        assert copies.of(other).path.is_file()


def test_what_had_room_once_is_not_too_large_when_builds_have_taken_some(folder, monkeypatch):
    """Libraries of others filled the cache, and a correct neighbour was refused at its second measurement."""
    monkeypatch.setattr(private_copy, "_ROOM_OF_ANY", 1 << 20)
    (folder / "level1/data/table.txt").write_bytes(b"1" * (3 << 20))
    only = solution(folder)
    with private_copies() as copies:
        for free_mb in (8, 4):
            monkeypatch.setattr(private_copy, "free_bytes", lambda folder, mb=free_mb: mb << 20)
            assert not copies.of(only).refused
            copies.release()
        monkeypatch.setattr(private_copy, "free_bytes", lambda folder: 2 << 20)
        with pytest.raises(OSError, match="No space left"):
            copies.of(only)


def test_copies_take_half_of_the_inodes_too(folder, monkeypatch):
    monkeypatch.setattr(private_copy, "free_files", lambda folder: 16)
    with private_copies() as copies:
        assert copies.of(solution(folder)).path.is_file()  # three files, two folders below its own
        with pytest.raises(OSError, match="No space left"):
            copies.of(solution(folder, "level1/2_other.py"))


def test_a_solution_that_names_more_than_there_is_room_for_does_not_withdraw_by_that(folder, monkeypatch):
    monkeypatch.setattr(private_copy, "free_bytes", lambda folder: 4 << 20)
    (folder / "level1/data/table.txt").write_bytes(b"1" * (3 << 20))
    only = solution(folder)
    with private_copies() as copies:
        with pytest.raises(OSError, match="No space left"):  # a machine without room for that little is at fault
            copies.of(only)
        monkeypatch.setattr(private_copy, "_ROOM_OF_ANY", 1 << 20)
        refused = copies.of(only)
        assert "the files that it names have 3 MB together" in refused.refused and copies.original(refused) == only
    assert only.path.is_file()


def test_where_a_copy_can_have_no_more_names_the_next_one_takes_them(folder, monkeypatch):
    """Beyond 65,000 names each further one was a whole copy: sources of 30 bytes took 50 MB each."""
    link, names = os.link, Counter()

    def two_names(one, other):
        if names[one] == 1:
            raise OSError(errno.EMLINK, os.strerror(errno.EMLINK))
        names[one] += 1
        link(one, other)

    monkeypatch.setattr(os, "link", two_names)
    for number in range(7):
        link(folder / "level1/helper.py", folder / f"level1/{number}.txt")
    named = ", ".join(f"'{number}.txt'" for number in range(7))
    (folder / "level1/1_uses.py").write_text(f"{USES}NAMES = {named}\n")
    with private_copies() as copies:
        root = copies.of(solution(folder)).root
        files = [root / "level1/helper.py", *root.glob("level1/*.txt")]
        assert len(files) == 8 and len({path.stat().st_ino for path in files}) == 4


def test_the_copy_of_one_solution_goes_and_leaves_its_room_to_the_next(folder, monkeypatch):
    """Copies of a solver's attempts stayed, until each further one ended its problem."""
    monkeypatch.setattr(private_copy, "free_bytes", lambda folder: 4 << 20)
    (folder / "level1/data/table.txt").write_bytes(b"1" * (1_500 << 10))
    (folder / "level1/2_other.py").write_text("open('data/table.txt')\nclass ModelNew: pass\n")
    first, other = solution(folder), solution(folder, "level1/2_other.py")
    with private_copies() as copies:
        for _ in range(4):
            one, two = copies.of(first), copies.of(other)
            copies.release(first)
            assert not one.root.exists() and (two.root / "level1/data/table.txt").stat().st_size == 1_500 << 10
            assert copies.original(two) == other
            copies.release(other)
            assert not any(copies._folder.iterdir())


@pytest.fixture
def small_disk(folder, monkeypatch):
    """Room for copies of 2 MiB; one of small files stays, so that what is free is not looked up again."""
    monkeypatch.setattr(private_copy, "free_bytes", lambda folder: 4 << 20)
    (folder / "level1/2_other.py").write_text("open('data/table.txt')\nclass ModelNew: pass\n")
    (folder / "level1/3_large.py").write_text("open('large.txt')\nclass ModelNew: pass\n")
    (folder / "level1/4_small.py").write_text("class ModelNew: pass\n")
    (folder / "level1/data/table.txt").write_bytes(b"1" * (1 << 20))
    with private_copies() as copies:
        assert copies.of(solution(folder, "level1/4_small.py")).path.is_file()
        yield copies


def test_a_hole_takes_no_room_and_gives_none_back(folder, small_disk):
    """Copies of others then took more than half of the disk, which is for builds."""
    os.truncate(folder / "level1/data/table.txt", 64 << 20)
    (folder / "level1/large.txt").write_bytes(b"1" * (3 << 20))
    first, large = solution(folder), solution(folder, "level1/3_large.py")
    assert small_disk.of(first).path.is_file()
    small_disk.release(first)
    with pytest.raises(OSError, match="No space left"):
        small_disk.of(large)


def test_a_copy_that_another_solution_still_has_keeps_its_room(folder, small_disk):
    (folder / "level1/large.txt").write_bytes(b"1" * (3 << 19))
    first, other, large = (solution(folder, f"level1/{name}.py") for name in ("1_uses", "2_other", "3_large"))
    assert small_disk.of(first).path.is_file() and small_disk.of(other).path.is_file()
    small_disk.release(first)
    with pytest.raises(OSError, match="No space left"):
        small_disk.of(large)
    small_disk.release(other)
    assert small_disk.of(large).path.is_file()


def test_without_second_names_each_copy_takes_its_room(folder, monkeypatch):
    """Eighteen MiB were copied where five were allowed."""

    def no_links(*_):
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(private_copy, "free_bytes", lambda folder: 4 << 20)
    (folder / "level1/data/table.txt").write_bytes(b"1" * (1_500 << 10))
    (folder / "level1/2_other.py").write_text("open('data/table.txt')\nclass ModelNew: pass\n")
    first, other = solution(folder), solution(folder, "level1/2_other.py")
    with private_copies() as copies:
        copies.of(first)
        monkeypatch.setattr(os, "link", no_links)
        with pytest.raises(OSError, match="No space left"):
            copies.of(other)
