"""Encodings of Python sources: what Python would decode by another than UTF-8 is not read at all."""

import importlib.util

import pytest

from harness.integrity.static import findings
from harness.result import Status
from harness.solution.discover import read_solution
from harness.solution.encoding import declared_encoding
from harness.solution.includes import read_source

OTHERS = [
    "# -*- coding: unicode_escape -*-\n# \\u000aran = True\\u000a\n",
    "#!/usr/bin/python3\n# vim: set fileencoding=unicode_escape :\n# \\u000aran = True\\u000a\n",
    "\r\f # coding=unicode_escape\r# \\u000aran = True\\u000a\r",
    "# coding: utf-7\n# +AAo-ran +AD0- True+AAo-\n",
]
SAME = [
    "",
    "# coding: utf-8\n",
    "#\n# -*- coding: UTF-8 -*-\n",
    "import os\n# coding: latin-1\n",
    "#\n#\n# coding: latin-1\n",
]


def loaded(path):
    module = importlib.util.module_from_spec(spec := importlib.util.spec_from_file_location("module", path))
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("text", OTHERS)
def test_code_in_another_encoding_runs_in_python_and_is_refused_here(tmp_path, text):
    path = tmp_path / "1_19.py"
    path.write_bytes(text.encode())
    assert loaded(path).ran
    with pytest.raises(OSError, match="declares the encoding .* must be UTF-8"):
        read_source(path)
    assert [finding.rule for finding in findings(read_solution(path))] == ["unreadable"]


@pytest.mark.parametrize("text", SAME)
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "with a byte order mark"])
def test_what_python_decodes_as_utf8_is_read(tmp_path, text, mark):
    path = tmp_path / "1_19.py"
    path.write_bytes(mark + text.encode() + b"value = '\xc3\xa4'\n")
    assert loaded(path).value == "\u00e4"
    assert read_source(path) == text + "value = '\u00e4'\n"


def test_an_encoding_that_python_does_not_know_is_named_as_it_is():
    assert declared_encoding(b"# coding: klingon") == "klingon"


@pytest.mark.parametrize("text", OTHERS[:1])
def test_such_a_candidate_is_a_build_error_that_says_what_to_do(judged, problem, text):
    result = judged(problem("1/19"), text + "class ModelNew: pass\n", ".py", workload="small")
    assert result.status is Status.BUILD_ERROR and "must be UTF-8" in result.message


def test_a_module_of_its_own_in_another_encoding_is_as_its_own_source(judged, problem, tmp_path):
    """Findings were told of a comment; Python ran a function."""
    (tmp_path / "helper.py").write_text("# coding: utf-7\nimport torch\n# +AAo-def f(x): return torch.relu(x)\n")
    source = "import helper\nNAMES = 'helper.py'\nclass ModelNew: pass\n"
    result = judged(problem("1/19"), source, ".py", workload="small")
    assert result.status is Status.BUILD_ERROR
    assert "helper.py: it declares the encoding utf-7, and a Python source must be UTF-8" in result.message
