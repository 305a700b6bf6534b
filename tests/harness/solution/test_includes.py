"""The local files that a source reaches through its includes."""

import os

import pytest

from harness.solution.includes import local_includes, real_path


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


def test_what_does_not_lie_below_a_folder_by_its_text_is_not_looked_at(tmp_path, monkeypatch):
    """A path on a disk of the network that does not answer held up the run for ever."""
    own, elsewhere, seen = tmp_path / "own", tmp_path / "elsewhere", []
    for folder in (own, elsewhere):
        folder.mkdir()
        (folder / "a.h").write_text("int a;")
    (own / "link.h").symlink_to("a.h")
    exists = os.path.exists
    monkeypatch.setattr(os.path, "exists", lambda path: seen.append(str(path)) or exists(path))
    text = f'#include "{elsewhere}/a.h"\n#include "../elsewhere/a.h"\n#include "link.h"\n#include "../own/a.h"\n'
    found = local_includes(text, own, [elsewhere], below=(own,))
    assert [*found] == [own / "a.h"]
    assert seen and all(os.path.normpath(path).startswith(str(own)) for path in seen)


def test_lines_of_any_length_take_time_in_proportion(tmp_path):
    for text in ("#" + "<" * 2_000_000, '#"' + " " * 2_000_000, "#\n" * 500_000):
        assert local_includes(text, tmp_path, [tmp_path]) == {}
