"""The forms in which CI shows a check."""

import re
from pathlib import Path
from xml.etree import ElementTree

from logs import result, run

from harness.result import Status
from kernelbench.gate.ci import annotations, headline, junit, speedup, summary, to_json
from kernelbench.gate.thresholds import Check, Limits, check_result


def a_regression(tmp_path):
    before = run(tmp_path / "before", result("1/19", 1.0, name="level1/19_relu.cu", seed=1))
    return check_result(result("1/19", 1.1, name="level1/19_relu.cu", seed=2), Limits(max_regression=0.05), before)


FAILED = Check(
    "1/1", "matmul.cu", result("1/1", status=Status.BUILD_ERROR, name="matmul.cu"),
    broken=['build_error: matmul.cu:12: error: expected ";", got 100%\x00 & <more>'],
)  # fmt: skip
GOOD = Check("1/2", "good.cpp", result("1/2", 0.5, name="good.cpp"))
SKIPPED = Check("1/3", "fast.cu", unchecked=["cuda solution, needs a GPU; built only"], built=True)
FAST = Check("1/5", "fast.py", result("1/5", 0.5, name="fast.py"))
UNDECIDED = Check("1/6", "noisy.py", result("1/6", 1.0, name="noisy.py"), undecided=["its speedup is unstable"])
GAP = Check("1/7", "", broken=["the problem is selected and has no solution"])


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


def test_an_annotation_points_to_the_file_itself_and_to_no_other():
    r"""The shown name of ``a\b.cu`` is the real one of a neighbour."""
    names = {r"a\\b.cu": r"file=a\b.cu,", r"a\\\\b.cu": r"file=a\\b.cu,", r"a\x1b.cu": "::error title="}
    for name, place in names.items():
        assert place in annotations([Check("1/1", name, broken=["fails"])], Path("."))


def test_junit_counts_failures_and_skips_and_is_xml():
    suite = ElementTree.fromstring(junit([FAILED, GOOD, SKIPPED]).encode())
    assert suite.attrib | {"time": ""} == {
        "name": "kb check", "tests": "3", "failures": "1", "errors": "0", "skipped": "1", "time": "",
    }  # fmt: skip
    failed, good, skipped = suite
    assert failed.attrib["name"] == "matmul.cu" and "& <more>" in failed.find("failure").text
    assert [part.tag for part in good] == ["system-out"] and "needs a GPU" in skipped.find("skipped").attrib["message"]


def test_the_summary_says_what_fails_and_what_was_not_checked():
    text = summary([FAILED, GOOD, SKIPPED], ["1/4 gone.cu is in runs/main, but not here"], "markdown")
    assert text.startswith("The gate fails: 1 of 3 do not hold. 2 of 3 evaluated.")
    assert "| FAILS |" in text and "- 1/1 matmul.cu: build_error" in text
    assert "Not checked here:\n\n- 1/3 fast.cu: cuda solution" in text and "gone.cu" in text
    assert headline([GOOD]) == "The gate holds. 1 of 1 evaluated."


def test_what_could_not_be_checked_is_an_error_everywhere_and_not_a_pass():
    checks = [GOOD, UNDECIDED]
    assert headline(checks) == "The gate is undecided: 1 of 2 could not be checked. 2 of 2 evaluated."
    assert "Could not be checked:\n\n    1/6 noisy.py: its speedup is unstable" in summary(checks, [], "terminal")
    suite = ElementTree.fromstring(junit(checks).encode())
    assert suite.attrib["errors"] == "1" and suite[1].find("error").attrib["message"] == "its speedup is unstable"
    (line,) = annotations(checks, Path(".")).splitlines()
    assert line.startswith("::error file=noisy.py") and line.endswith("could not be checked: its speedup is unstable")
    assert to_json(checks, [])["verdict"] == "undecided" and to_json(checks, [])["exit_status"] == 3


def test_a_gap_is_a_line_of_its_own():
    assert "FAILS" in summary([GOOD, GAP], [], "terminal").splitlines()[5]
    assert "1/7: the problem is selected and has no solution" in summary([GOOD, GAP], [], "terminal")
    assert ElementTree.fromstring(junit([GAP]).encode())[0].attrib["name"] == "1/7"


def test_a_speedup_is_shown_with_its_verdict_and_a_tie_as_one():
    tie = Check("1/8", "tie.py", result("1/8", 1.003, seed=3))
    untimed = Check("1/9", "untimed.py", result("1/9"))
    assert [speedup(c) for c in (FAST, tie, untimed, FAILED, SKIPPED)] == [
        "2.00x (faster)", "1.00x (tie)", "not timed", "", "",
    ]  # fmt: skip
    assert "| 2.00x (faster) |" in summary([FAST], [], "markdown")
    assert ElementTree.fromstring(junit([tie]).encode())[0].find("system-out").text == "speedup 1.00x (tie)"


def test_json_has_every_figure_and_why_there_is_none():
    fast, skipped = to_json([FAST, SKIPPED], ["a note"])["checks"]
    assert fast["verdict"] == "holds" and fast["result"]["verdict"] == "faster"
    assert fast["result"]["interval"]["low"] < fast["result"]["settled_speedup"] < fast["result"]["interval"]["high"]
    assert fast["result"]["median_ms"] and fast["result"]["no_speedup"] is None
    assert skipped["result"] is None and skipped["verdict"] == "built"


def test_a_summary_has_no_more_than_a_forge_shows_and_the_rest_is_counted():
    """Twelve messages of one author made GitHub show nothing of anybody."""
    failed = [
        result(f"1/{number}", status=Status.WRONG_VALUE, name=f"{number}" + "*@" * 240, message="*@" * 4900)
        for number in range(1, 400)
    ]
    checks = [check_result(one, Limits()) for one in failed]
    text = summary(checks, [], "markdown")
    assert len(text.encode()) < 1 << 20 and "The gate fails: 399 of 399" in text
    assert re.search(r"^- and \d+ more$", text, re.MULTILINE) and "too large to be shown" in text
    assert len(summary(checks[:3], [], "markdown").split("\n- ")) == 4
