"""The local files that a source reaches through its includes."""

import pytest

from harness.includes import UnknownInclude, local_includes


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


def test_an_absolute_path_is_local(tmp_path):
    (tmp_path / "a.h").write_text("int a;")
    assert names(local_includes(f'#include "{tmp_path}/a.h"', None, [])) == ["a.h"]


def test_an_include_that_only_the_compiler_understands_is_an_error(tmp_path):
    with pytest.raises(UnknownInclude, match="#include HEADER"):
        local_includes('#define HEADER "a.h"\n#include HEADER', tmp_path, [])
