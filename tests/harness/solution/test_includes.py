"""The local files that a source reaches through its includes."""

import os
import threading
from pathlib import Path

import pytest

from harness.solution.includes import (
    DEVICES,
    digest_of,
    local_includes,
    open_plain,
    reached,
    read_bytes,
    read_head,
    real_path,
)


def names(files):
    return sorted(path.name for path in files)


def test_files_beside_it_and_in_the_search_path_are_found_through_others(tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "a.h").write_text('#include "b.h"\n#include <vector>')
    (tmp_path / "b.h").write_text('#  include <c.h>\n#include "a.h"')
    (tmp_path / "lib" / "c.h").write_text("int c;")
    assert names(local_includes('#include "a.h"', tmp_path, [tmp_path / "lib"])) == ["a.h", "b.h", "c.h"]
    assert names(local_includes('#include "a.h"', tmp_path, [])) == ["a.h", "b.h"]
    assert names(local_includes("#include <a.h>", tmp_path, [])) == []


def test_a_real_path_is_where_the_system_finds_it(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/file").touch()
    (tmp_path / "link").symlink_to("folder/file")
    assert real_path(tmp_path / "link") == real_path(tmp_path / "folder/../folder/file") == tmp_path / "folder/file"
    assert real_path(tmp_path / "folder/missing/file") == tmp_path / "folder/missing/file"
    with pytest.raises(FileNotFoundError):  # a link behind it would be taken for a file
        real_path(tmp_path / "missing/../link")


def test_an_absolute_path_is_local(tmp_path):
    (tmp_path / "a.h").write_text("int a;")
    assert names(local_includes(f'#include "{tmp_path}/a.h"', None, [])) == ["a.h"]


@pytest.mark.parametrize(
    "line",
    ['#import "a.h"', '# include_next "a.h"', '%:include "a.h"', '??=include "a.h"', '#inc\\\nlude "a.h"',
     '#/* */include/* */"a.h"', '/* */ #include "a.h"', '#define HEADER "a.h"\n#include HEADER',
     '#if __has_include("a.h")\n#endif', '#embed "a.h"'],
)  # fmt: skip
def test_every_spelling_of_an_include_is_seen(tmp_path, line):
    (tmp_path / "a.h").write_text("int a;")
    assert names(local_includes(line, tmp_path, [])) == ["a.h"]


def test_a_file_that_is_not_allowed_is_not_opened(tmp_path):
    (tmp_path / "a.h").write_text("int a;")
    (tmp_path / "b.h").symlink_to(tmp_path / "a.h")
    assert names(local_includes('#include "b.h"', tmp_path, [], lambda path: path.name == "b.h")) == []
    assert names(local_includes('#include "b.h"', tmp_path, [], lambda path: path.name == "a.h")) == ["a.h"]


@pytest.fixture
def looked_at(monkeypatch):
    """Return the real paths of what is opened or asked for by a path."""
    seen, opened = [], os.open

    def recorded(path, flags, mode=0o777, *, dir_fd=None):
        place = opened(path, flags, mode, dir_fd=dir_fd)
        seen.append(os.readlink(f"/proc/self/fd/{place}"))
        return place

    monkeypatch.setattr(os, "open", recorded)
    for name in ("exists", "isdir", "isfile"):
        monkeypatch.setattr(os.path, name, lambda path: seen.append(str(path)))
    return seen


@pytest.fixture
def own(tmp_path):
    """Return a folder with ``a.h``, and links that lead to it and out of the folder."""
    own = tmp_path / "own"
    for folder in (own, own / "sub", tmp_path / "elsewhere"):
        folder.mkdir()
        (folder / "a.h").write_text("int a;")
    links = {"link.h": "a.h", "folder": "sub", "absolute.h": own / "a.h", "out.h": "../elsewhere/a.h",
             "away": tmp_path / "elsewhere", "again": "away", "up": "..", "circle": "circle"}  # fmt: skip
    for name, target in links.items():
        (own / name).symlink_to(target)
    return own


@pytest.mark.parametrize(
    "path", ["link.h", "folder/../link.h", "absolute.h", "sub/../a.h", "folder/../../own/a.h", "up/own/a.h"]
)
def test_what_lies_below_a_folder_is_found_by_every_way_that_stays_there(own, path):
    found = local_includes(f'#include "{path}"', own, [], below=(own,))
    stays = not path.endswith("/own/a.h")
    assert [*found] == [own / "a.h"] * stays


@pytest.mark.parametrize(
    "path",
    ["{0}/elsewhere/a.h", "../elsewhere/a.h", "out.h", "away/a.h", "again/a.h", "up/elsewhere/a.h", "circle",
     "/proc/self/root{0}/elsewhere/a.h", "/dev/fd/../root{0}/elsewhere/a.h", "sub/../../elsewhere/a.h"],
)  # fmt: skip
def test_what_does_not_lie_below_a_folder_is_not_looked_at(own, path, looked_at):
    """A path on a disk of the network that does not answer held up the run for ever."""
    path = path.format(own.parent)
    assert local_includes(f'#include "{path}"', own, [], below=(own, *DEVICES)) == {}
    assert all(Path(seen).is_relative_to(own) or seen in ("/dev", "/dev/fd") for seen in looked_at)


def test_a_path_takes_few_descriptors_however_long_it_is(own):
    assert reached(f"{own}/{'sub/../' * 500}a.h", (own,))[0] == own / "a.h"
    deep = own.joinpath(*["d"] * 150)
    deep.mkdir(parents=True)
    with pytest.raises(OSError, match="too deep"):
        reached(deep, (own,))


def test_of_what_is_not_there_the_path_is_that_of_the_folder_which_is(own):
    assert reached(own / "folder/missing/x.h", (own,)) == (own / "sub/missing/x.h", 0)
    assert reached(own / "sub", (own,)) == (own / "sub", os.stat(own / "sub").st_mode)
    with pytest.raises(OSError):
        reached(own / "missing/../away/a.h", (own,))


def test_lines_of_any_length_take_time_in_proportion(tmp_path):
    for text in ("#" + "<" * 2_000_000, '#"' + " " * 2_000_000, "#\n" * 500_000):
        assert local_includes(text, tmp_path, [tmp_path]) == {}


def test_lines_that_name_nothing_count_in_the_time_that_lookups_have(tmp_path, monkeypatch):
    """The time was looked at only where a place was: millions of lines took 4 s each time, in the judge."""
    monkeypatch.setattr("harness.solution.includes._LOOKUPS_S", -1.0)
    with pytest.raises(OSError, match="takes more than -1 s"):
        local_includes("#ab\n" * 2000, tmp_path, [])


@pytest.mark.parametrize(
    "read", [read_bytes, digest_of, lambda path: read_head(path, 10), lambda path: open_plain(path).readline()]
)
def test_a_plain_file_that_keeps_its_reader_waiting_is_refused_at_once(tmp_path, monkeypatch, read):
    """A solution named `kmsg` in a run over `/proc` had `kb report` wait for ever."""
    (tmp_path / "kmsg").touch()
    os.mkfifo(tmp_path / "waits")
    waits = os.open(tmp_path / "waits", os.O_RDWR)
    end = threading.Timer(3, os.close, [waits])  # who waits sees the end of the file then
    end.start()
    opened = os.open

    def of_proc(path, flags, *more, **others):  # as /proc/kmsg, which only root can open
        return opened(tmp_path / "waits" if str(path).startswith("/proc/self/fd/") else path, flags, *more, **others)

    monkeypatch.setattr(os, "open", of_proc)
    with pytest.raises(BlockingIOError):
        read(tmp_path / "kmsg")
    assert end.is_alive()
    end.cancel()
    os.close(waits)
