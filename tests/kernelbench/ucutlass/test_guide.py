"""The guide: its programs are valid, its tables are those of the code, and every finding that it shows is real."""

import importlib.util
import json
import re
from pathlib import Path

import pytest

from kernelbench.ucutlass import ProgramError, check
from kernelbench.ucutlass.codegen.coverage import ROWS

ROOT = Path(__file__).parents[3]
GALLERY = sorted((ROOT / "kernelbench" / "ucutlass" / "gallery").glob("*.dsl"))
GUIDE = (ROOT / "docs" / "ucutlass.md").read_text()


def tables():
    spec = importlib.util.spec_from_file_location("ucutlass_tables", ROOT / "scripts" / "ucutlass_tables.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_tables_are_what_the_code_says():
    """After a change: python scripts/ucutlass_tables.py"""
    assert tables().filled(GUIDE) == GUIDE


@pytest.mark.parametrize("source", re.findall(r"^```dsl\n(.*?)^```", GUIDE, re.M | re.S))
def test_programs_are_valid(source):
    assert check(source)


def test_the_finding_that_it_explains_is_what_such_a_program_gets():
    (shown,) = re.findall(r"^```text\n(.*?)^```", GUIDE, re.M | re.S)
    source = (
        "gemm().with_dtype(input=fp16, acc=fp32, output=fp16)\n.with_layout(A=RowMajor, B=ColumnMajor, C=RowMajor)\n"
        "  .with_threadblockshape(m=128, n=128, k=64).with_cluster(m=2, n=1, k=1).with_arch(sm_90a)"
        ".with_stages(2).with_scheduler(kernel=tma_cooperative)"
    )
    with pytest.raises(ProgramError) as error:
        check(source)
    assert str(error.value).strip() == shown.strip()


def test_what_runs_was_right_on_a_gpu_and_what_only_builds_was_not():
    seen = json.loads((ROOT / "results/h100/ucutlass/ucutlass.json").read_text())["programs"]
    right = {name for name, found in seen.items() if found.get("right")}
    for row in ROWS:
        assert (row.state == "runs") == (bool(row.programs) and set(row.programs) <= right), row.what


def test_the_gallery_has_every_program_that_the_table_names():
    assert {name for row in ROWS for name in row.programs} <= {path.stem for path in GALLERY}


@pytest.mark.parametrize("path", GALLERY, ids=[path.stem for path in GALLERY])
def test_programs_of_the_gallery_are_valid(path):
    assert check(path.read_text())
