"""The forms in which CI shows a check."""

from pathlib import Path
from xml.etree import ElementTree

from logs import result, run

from harness.result import Status
from kernelbench.ci import annotations, headline, junit, summary
from kernelbench.gate import Check, Limits, check_result


def a_regression(tmp_path):
    before = run(tmp_path / "before", result("1/19", 1.0, name="level1/19_relu.cu", seed=1))
    return check_result(result("1/19", 1.1, name="level1/19_relu.cu", seed=2), Limits(max_regression=0.05), before)


FAILED = Check(
    "1/1", "matmul.cu", result("1/1", status=Status.BUILD_ERROR, name="matmul.cu"),
    broken=['build_error: matmul.cu:12: error: expected ";", got 100%\x00 & <more>'],
)  # fmt: skip
GOOD = Check("1/2", "good.cpp", result("1/2", 0.5, name="good.cpp"))
SKIPPED = Check("1/3", "fast.cu", unchecked=["cuda solution, needs a GPU; built only"], evaluable=False, built=True)


def test_an_annotation_names_the_kernel_that_regressed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    line = annotations([a_regression(tmp_path)], Path("kernels"))
    assert line.startswith(
        "::error file=kernels/level1/19_relu.cu,title=kb check%3A 1/19 19_relu.cu::speedup fell from"
    )
    assert "allowed" in line and "\n" not in line


def test_an_annotation_points_to_the_line_and_cannot_be_broken_out_of():
    hostile = Check("1/1", "a,b:c.cu", broken=["first\n::error::second 100%"])
    text = annotations([FAILED, hostile, GOOD, SKIPPED], Path("."))
    lines = text.splitlines()
    assert len(lines) == 3 and "file=matmul.cu,line=12," in lines[0]
    assert "file=a%2Cb%3Ac.cu" in lines[1] and lines[1].endswith("::first%0A::error::second 100%25")
    assert lines[2].startswith("::notice file=fast.cu,")


def test_junit_counts_failures_and_skips_and_is_xml():
    suite = ElementTree.fromstring(junit([FAILED, GOOD, SKIPPED]).encode())
    assert suite.attrib | {"time": ""} == {
        "name": "kb check", "tests": "3", "failures": "1", "errors": "0", "skipped": "1", "time": "",
    }  # fmt: skip
    failed, good, skipped = suite
    assert failed.attrib["name"] == "matmul.cu" and "& <more>" in failed.find("failure").text
    assert list(good) == [] and "needs a GPU" in skipped.find("skipped").attrib["message"]


def test_the_summary_says_what_fails_and_what_was_not_checked():
    text = summary([FAILED, GOOD, SKIPPED], ["1/4 gone.cu is in runs/main, but not here"], "markdown")
    assert text.startswith("The gate fails: 1 of 3 solution(s). 2 of 3 evaluated.")
    assert "| FAILS |" in text and "- 1/1 matmul.cu: build_error" in text
    assert "Not checked here:\n\n- 1/3 fast.cu: cuda solution" in text and "gone.cu" in text
    assert headline([GOOD]) == "The gate holds. 1 of 1 evaluated."
