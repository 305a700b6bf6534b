"""`kb findings`: what a reviewer should look at, and whose kernels a log of ncu has."""

import json
import re
import subprocess

import pytest
from logs import NO_LOGS, no_log
from warm_kb import KB

SOURCE = """
from torch.utils.cpp_extension import load_inline
source = "__global__ void relu(float* x, int n) {}"
"""
HEAD = '"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"\n'
LINE = '"{id}","{name}","gpu__time_duration.sum","ns","{ns}"\n'
RAW = '"ID","Kernel Name","gpu__time_duration.sum"\n"","","hour"\n"0","k","6,000"\n'


def kb(*arguments):
    command = [*KB, "findings", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


@pytest.fixture
def solution(tmp_path):
    path = tmp_path / "1_19.py"
    path.write_text(SOURCE)
    return path


def log(path, **ns):
    path.write_text(HEAD + "".join(LINE.format(id=i, name=name, ns=time) for i, (name, time) in enumerate(ns.items())))
    return path


def test_no_two_files_are_shown_by_one_name(tmp_path):
    """An escape looked like its own name, and a name that was wrapped at a blank like one without."""
    names = ["a\x1b.py", r"a\x1b.py", f"{'k' * 40} b.py", f"{'k' * 40}b.py", "n b.py", "n\nb.py"]
    for name in names:
        (tmp_path / name).write_text(SOURCE + "import ctypes\n")
    lines = kb(*(tmp_path / name for name in names)).stdout.splitlines()
    shown = {re.split(r":\d+ ", line)[0] for line in lines if "ctypes" in line}
    assert len(shown) == len(names)


def test_a_log_of_ncu_tells_whose_the_kernels_are(solution, tmp_path):
    written = log(tmp_path / "log.csv", **{"relu(float *, int)": 3000, "cublas_like_thing(int)": 1000})
    done = kb(solution, "--ncu", written)
    assert done.returncode == 0 and "its own kernels take 75.0% of the time" in done.stdout, done.stderr
    kernels = json.loads(kb(solution, "--ncu", written, "--json").stdout)["kernels"]
    assert [(k["name"], k["share"], k["own"]) for k in kernels] == [
        ("relu(float *, int)", 0.75, True), ("cublas_like_thing(int)", 0.25, False),
    ]  # fmt: skip


@pytest.mark.parametrize("units", [("us", "ms"), ("usecond", "msecond")])
def test_times_of_a_log_have_the_units_of_their_rows(solution, tmp_path, units):
    """ncu chooses a unit for each, and 3 us were three times 1 ms."""
    names = ("relu(float *, int)", "cublas_like_thing(int)")
    rows = (LINE.replace('"ns"', f'"{units[i]}"').format(id=i, name=names[i], ns=(3, 1)[i]) for i in range(2))
    (tmp_path / "log.csv").write_text(HEAD + "".join(rows))
    kernels = json.loads(kb(solution, "--ncu", tmp_path / "log.csv", "--json").stdout)["kernels"]
    assert {k["name"]: k["share"] for k in kernels} == pytest.approx({names[0]: 3 / 1003, names[1]: 1000 / 1003})


def test_libraries_alone_are_named_as_what_they_would_be_rejected_for(solution, tmp_path):
    done = kb(solution, "--ncu", log(tmp_path / "log.csv", **{"ampere_sgemm_128x64_nn": 1000, "relu(float *)": 1}))
    assert "its own kernels take 0.1% of the time: in the track 'kernels' it would be rejected" in done.stdout


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot read .*no such file"),
        ("==ERROR== ERR_NVGPUCTRPERM", "administrators"),
        (HEAD + LINE.format(id=0, name="k", ns=""), "has no times.*gpu__time_duration.sum"),
        (HEAD + LINE.format(id=0, name="k", ns="nan"), "has no times.*gpu__time_duration.sum"),
        (HEAD + LINE.format(id=0, name="k", ns="-5"), "has no times.*gpu__time_duration.sum"),
        (HEAD + LINE.format(id=0, name="k", ns="1e999"), "has no times.*gpu__time_duration.sum"),
        ('"ID","Kernel Name","Metric Name"\n"0","k","gpu__time_duration.sum"\n', "has no times"),
        (HEAD + LINE.format(id=0, name="x" * 200_000, ns="5"), "its table is damaged .*take it again"),
        (HEAD.rstrip() + ',"m"' * 3_000 + "\n", "its table has 3,0.. columns, and at most 2,000 are read"),
        (HEAD.rstrip() + ',"m"' * 1_900 + "\n" + '"1"\n' * 11_000, "cells, and at most 20,000,000 are read"),
        (2 * (HEAD + LINE.format(id=0, name="k", ns="5")), "two tables.*--log-file"),
        (HEAD + LINE.replace('"ns"', '"hour"').format(id=0, name="k", ns="5"), "is in 'hour', .*--print-units base"),
        (HEAD + LINE.replace('"ns"', '""').format(id=0, name="k", ns="5"), "is in '', .*--print-units base"),
        (RAW, "is in 'hour', .*--print-units base"),
        ("nothing here\n" + "x" * 200_000, "no kernel"),
    ],
)
def test_a_log_that_is_none_is_one_clear_error(solution, tmp_path, text, message):
    if text is not None:
        (tmp_path / "log.csv").write_text(text)
    done = kb(solution, "--ncu", tmp_path / "log.csv")
    assert done.returncode == 2 and "Traceback" not in done.stderr, done.stderr
    assert re.search(message, done.stderr, re.IGNORECASE | re.DOTALL), done.stderr


def test_a_wrong_comment_is_one_clear_error(tmp_path):
    path = tmp_path / "a.py"
    path.write_text("# kb: device=\x1b]0;title\x07\nx = 1\n")
    done = kb(path)
    assert done.returncode == 2 and "is not one of" in done.stderr and "\x1b" not in done.stderr


@pytest.mark.parametrize("kind", NO_LOGS)
def test_a_log_that_is_no_plain_file_or_too_large_is_one_clear_error(solution, tmp_path, kind):
    no_log(tmp_path / "log.csv", kind)
    done = kb(solution, "--ncu", tmp_path / "log.csv")
    assert done.returncode == 2 and re.search("log.csv: it is (not a plain file|too large)", done.stderr), done.stderr


def test_a_log_is_of_one_solution(solution, tmp_path):
    done = kb(solution, solution, "--ncu", log(tmp_path / "log.csv", k=1))
    assert done.returncode == 2 and "name one FILE" in done.stderr
