"""Sizes and shapes of what candidates write: whatever they are, one candidate fails, soon, and the run goes on."""

import contextlib
import json
import os
import resource
import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from harness.compile import BuildContext, build
from harness.integrity.static import findings
from harness.isolated_call import apart
from harness.judge.conditions import Conditions
from harness.judge.record import failed_result
from harness.limits import MAX_FINDINGS, MAX_LOG_BYTES, MAX_SAMPLE, MAX_SOURCE_BYTES
from harness.process import protocol
from harness.result import CandidateFailure, Status
from harness.solution import includes
from harness.solution.discover import SolutionError, discover, files_of, read_solution
from harness.solution.includes import local_includes
from harness.solution.source_facts import facts
from harness.solution.visible_files import own_files, own_texts

GIB = 1 << 30
MODEL = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x): return x.relu()\n"


@pytest.fixture(autouse=True)
def nothing_hangs():
    """A minute is a hang: each of these takes a moment, and took half of one and more, or for ever."""
    signal.signal(signal.SIGALRM, lambda *_: pytest.fail("it hangs"))
    signal.alarm(60)
    yield
    signal.alarm(0)


@pytest.fixture
def context(server):
    return BuildContext(server, None, torch.__version__, 60, 4 * GIB)


@pytest.fixture
def write(tmp_path):
    def write(source, name="1_19.py"):
        path = tmp_path / name
        path.write_bytes(source if isinstance(source, bytes) else source.encode())
        return path

    return write


def refused(path, context):
    """The message of the build error in which a solution ends."""
    with pytest.raises(CandidateFailure) as failed:
        build(read_solution(path), context)
    assert failed.value.status is Status.BUILD_ERROR
    return failed.value.message


@pytest.mark.parametrize("sample", ["9" * 5_000, "²", "٣", "-1", "1" + "0" * 20, "1e3", ""])
def test_a_sample_that_is_no_number_is_a_reason_and_no_solution(write, tmp_path, sample):
    write(f"# kb: problem=1/19 sample={sample}\n{MODEL}", "odd.py")
    write(MODEL)
    found = discover(tmp_path)
    (path, reason), = found.unmapped
    assert path.name == "odd.py" and f"is not a number from 0 to {MAX_SAMPLE}" in reason and len(reason) < 500
    assert [solution.name for solution in found.solutions] == ["1_19.py"]


@pytest.mark.parametrize("problem", ["9" * 5_000 + "/1", "1/²", "1/" + "9" * 30])
def test_a_problem_that_is_no_number_is_a_reason(write, tmp_path, problem):
    write(f"# kb: problem={problem}\n{MODEL}", "odd.py")
    (_, reason), = discover(tmp_path).unmapped
    assert "is not a problem id" in reason and len(reason) < 500


@pytest.mark.parametrize(
    "name", ["1_" + "9" * 200, f"level_1_problem_2_sample_{'9' * 100}_kernel", "1_19_s" + "9" * 99], ids=len
)
def test_names_with_endless_numbers_map_to_no_problem(write, tmp_path, name):
    write(MODEL, f"{name}.py")
    (_, reason), = discover(tmp_path).unmapped
    assert "maps to no problem" in reason


def test_links_in_circles_pipes_and_devices_are_no_solutions_and_nobody_waits_for_them(write, tmp_path):
    write(MODEL)
    (tmp_path / "1_20.py").symlink_to(tmp_path / "1_21.py")
    (tmp_path / "1_21.py").symlink_to(tmp_path / "1_20.py")
    (tmp_path / "around").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "1_22.py")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "1_23.py").symlink_to(tmp_path / "pipe")
    (tmp_path / "1_24.cu").symlink_to("/dev/zero")
    found = discover(tmp_path)
    assert [solution.name for solution in found.solutions] == ["1_19.py"]
    assert {path.name for path, _ in found.unmapped} == {"around", "1_20.py", "1_21.py", "1_23.py", "1_24.cu"}


@pytest.mark.slow
def test_links_to_links_without_end_are_told_with_the_others(write, tmp_path):
    write(MODEL)
    for number in range(3_000):
        (tmp_path / f"1_20_{number}.py").symlink_to(tmp_path / f"1_20_{number + 1}.py")
    write(MODEL + "FILE = '1_20_0.py'\n", "1_21.py")
    found = discover(tmp_path)
    assert [solution.name for solution in found.solutions] == ["1_19.py", "1_21.py"]
    assert len(found.unmapped) == 3_000


def test_folders_in_folders_without_end_are_walked(write, tmp_path):
    write(MODEL)
    folder = os.open(tmp_path, os.O_RDONLY)
    for _ in range(1_100):  # deeper than Python calls, and longer than a path may be
        os.mkdir("level1", dir_fd=folder)
        folder, outer = os.open("level1", os.O_RDONLY, dir_fd=folder), folder
        os.close(outer)
    os.close(folder)
    try:
        assert [solution.name for solution in discover(tmp_path).solutions] == ["1_19.py"]
    finally:
        os.system(f"rm -rf '{tmp_path}/level1'")  # which shutil cannot


@pytest.mark.parametrize("suffix", ["py", "cu", "cpp"])
def test_a_file_of_a_terabyte_is_a_build_error_with_the_cap(tmp_path, context, suffix):
    path = tmp_path / f"1_19.{suffix}"
    path.write_bytes(MODEL.encode())
    os.truncate(path, 1 << 40)
    message = refused(path, context)
    assert f"{1 << 40:,} bytes, and the limit is {MAX_SOURCE_BYTES:,}" in message
    solution = read_solution(path)
    assert findings(solution)[0].rule == "unreadable" and files_of(path, tmp_path) == set()
    with pytest.raises(OSError, match="too large"):
        own_texts(solution)


def test_an_endless_file_without_a_problem_is_told_with_the_others(write, tmp_path):
    write(MODEL)
    (tmp_path / "thing.py").touch()
    os.truncate(tmp_path / "thing.py", 1 << 40)
    (path, reason), = discover(tmp_path).unmapped
    assert path.name == "thing.py" and "maps to no problem" in reason


def test_files_of_other_sizes_are_other_solutions(write):
    path = write(b" " * (MAX_SOURCE_BYTES + 1))
    one = read_solution(path)
    os.truncate(path, MAX_SOURCE_BYTES + 2)
    assert read_solution(path).sha256 != one.sha256


@pytest.mark.parametrize("line", ["# kb: a" + " " * 60_000 + "b", "#" + " " * 60_000 + "kb", " " * 60_000 + "#"])
def test_blanks_in_a_comment_are_read_once(write, line):
    assert read_solution(write(f"{line}\n{MODEL}")).sample == 0


@pytest.mark.parametrize(
    "source",
    [
        "__global__ " * 40_000,
        "__global__ __launch_bounds__( " * 30_000,
        "__global__ __launch_bounds__(" * 20_000 + ")" * 20_000,
        '\\"' * 400_000,
        "'\\" * 400_000,
        'R"(' * 300_000,
        'R"x(' + ")y" * 300_000,
        "/*" * 400_000,
        "(" * 900_000,
        "#" + " " * 900_000,
    ],
    ids=["kernels", "bounds", "nested", "quotes", "ticks", "raw", "marks", "comments", "brackets", "blanks"],
)
def test_tokens_are_read_once(write, source):
    assert len(findings(read_solution(write(source, "1_19.cu")))) <= MAX_FINDINGS


@pytest.mark.slow
def test_the_syntax_tree_of_tiny_statements_takes_no_memory_of_ours(write):
    path = write("a\n" * (MAX_SOURCE_BYTES // 32))
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    solution = read_solution(path)
    assert findings(solution) == [] and own_files(solution) == [path]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb < 50_000


def test_a_source_whose_parsing_is_ended_is_a_build_error_with_the_limit(write, context, monkeypatch):
    monkeypatch.setattr("harness.isolated_call.CPU_SECONDS", 0.05)
    path = write("a\n" * (MAX_SOURCE_BYTES // 32))
    assert "to read it takes more than 0.05 s of processor time" in refused(path, context)
    solution = read_solution(path)
    assert findings(solution)[0].rule == "unreadable" and own_files(solution) == [path]


@pytest.mark.parametrize(
    "source", ["(" * 100_000, "x = " + "-" * 100_000 + "1", "a" + ".a" * 200_000, "f'{" * 50_000], ids=lambda s: s[:5]
)
def test_deep_nesting_is_a_build_error(write, context, source):
    refused(write(source), context)


def test_so_many_findings_as_a_reviewer_reads_the_gravest_of_them(write):
    source = "import os\n" + "x = torch.relu(a)\n" * 5_000 + "os._exit(0)\n" + "open('f')\n" * 5_000
    found = findings(read_solution(write("import torch\n" + source)))
    assert len(found) == MAX_FINDINGS and "process_control" in {finding.rule for finding in found}
    assert [finding.line for finding in found] == sorted(finding.line for finding in found)


@pytest.mark.parametrize("text", ["\U0001f600", "\x1b", "\u2018a\u2019 "])
def test_a_log_has_a_limit_in_the_bytes_of_a_record(text):
    """Nine hundred logs of smileys made a run's log so large that nobody read it any more."""
    log = "begin " + text * 300_000 + " end"
    shown = CandidateFailure(Status.RUNTIME_ERROR, "", log).log
    assert 0.9 * MAX_LOG_BYTES < len(json.dumps(shown)) < MAX_LOG_BYTES + 100
    assert shown.startswith("begin ") and shown.endswith(" end") and "characters left out" in shown


def test_a_record_of_the_largest_of_everything_is_a_message(write, problem):
    statement = f"os.environ[{'x' * 500!r}]\n"
    solution = read_solution(write("import os\n" + statement * 400))
    failure = CandidateFailure(Status.RUNTIME_ERROR, "\x1b" * 10_000_000, "\x1b" * 10_000_000)
    assert len(failure.log) < MAX_LOG_BYTES + 100
    result = failed_result(
        problem("1/19").workload("small"), solution, Conditions(torch.device("cpu"), 60, GIB), failure
    )
    assert len(json.dumps(result.to_json())) < protocol.MAX_BYTES / 10


def test_a_forged_answer_without_a_message_is_a_note_of_the_build(write, context):
    forged = json.dumps({"error": {"status": "runtime_error", "message": "", "log": ""}}).encode()
    path = write(
        "import gc, os, socket, struct\nfrom torch.utils import cpp_extension\n"
        "channel = next(o for o in gc.get_objects() if type(o) is socket.socket and o.fileno() >= 0)\n"
        f"channel.sendall(struct.pack('!I', {len(forged)}) + {forged!r})\nos._exit(0)\n"
    )
    assert "ended early" in build(read_solution(path), context).note


@pytest.mark.parametrize("name", ["/dev/zero", "pipe", "endless.h"])
def test_an_include_that_has_no_end_is_a_build_error(write, tmp_path, context, name):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "endless.h").touch()
    os.truncate(tmp_path / "endless.h", 1 << 40)
    path = write(f'#include "{name}"\nextern "C" void solution() {{}}\n', "1_19.cpp")
    message = refused(path, replace(context, timeout_s=20))
    assert "not a plain file" in message or "too large" in message


@pytest.mark.parametrize("place", ["solutions", "elsewhere"])
@pytest.mark.parametrize("suffix", ["cpp", "py"])
def test_a_pipe_that_a_source_names_is_not_opened(tmp_path, context, suffix, place):
    """To open is to act: a writer that waits is let through, and a device may rewind, reset or start a timer."""
    for name in ("solutions", "elsewhere"):
        (tmp_path / name).mkdir()
    pipe, path = tmp_path / place / "pipe.h", tmp_path / "solutions" / f"1_19.{suffix}"
    os.mkfifo(pipe)
    writer = subprocess.Popen(["sh", "-c", ': > "$0"', str(pipe)])
    include = f'#include "{pipe}"'
    path.write_text(f"{include}\n" if suffix == "cpp" else f"SOURCE = {include!r}\nFILE = {str(pipe)!r}\n{MODEL}")
    try:
        solution, = discover(tmp_path / "solutions").solutions
        findings(solution)
        own_texts(solution)
        with contextlib.suppress(CandidateFailure):
            build(solution, replace(context, timeout_s=20))
        assert writer.poll() is None
    finally:
        writer.kill()
        writer.wait()


@pytest.mark.parametrize("suffix", ["cpp", "py"])
def test_files_outside_of_the_directory_of_solutions_are_not_opened(write, tmp_path, monkeypatch, suffix):
    (tmp_path / "solutions").mkdir()
    write("int x;\n", "mine.h")
    write("x = 1\n", "mine.py")
    include, opened = f'#include "{tmp_path}/mine.h"', []
    source = f"{include}\n" if suffix == "cpp" else f"A, B = {include!r}, {str(tmp_path / 'mine.py')!r}\n{MODEL}"
    path = write(source, f"solutions/1_19.{suffix}")
    monkeypatch.setattr(includes, "open_plain", lambda file, *_: opened.append(file.name) or file.open("rb"))
    facts(str(path), str(path.parent))
    assert set(opened) == {path.name}


def test_headers_have_a_cap_together(tmp_path):
    for index in range(5):
        (tmp_path / f"{index}.h").write_text("/" * (4 << 20))
    with pytest.raises(OSError, match="16 MiB of headers"):
        local_includes("".join(f'#include "{index}.h"\n' for index in range(5)), tmp_path, [])
    for index in range(600):
        (tmp_path / f"{index}.h").write_text("")
    with pytest.raises(OSError, match="500 files"):
        local_includes("".join(f'#include "{index}.h"\n' for index in range(600)), tmp_path, [])


def test_a_directory_of_too_many_files_is_told(tmp_path, monkeypatch, write):
    monkeypatch.setattr("harness.solution.entries.MAX_ENTRIES", 20)
    for index in range(30):
        write(MODEL, f"1_{index + 1}.py")
    with pytest.raises(SolutionError, match="more than 20 files"):
        discover(tmp_path)


def test_a_solution_whose_path_is_too_long_is_listed(tmp_path, write):
    """Each finding names it: 600 records of 4 MB filled a log, and the run ended."""
    write(MODEL, "1_19.py")
    far = tmp_path / ("a" * 250) / ("b" * 250) / "1_20.py"
    far.parent.mkdir(parents=True)
    far.write_text(MODEL)
    found = discover(tmp_path)
    assert [solution.name for solution in found.solutions] == ["1_19.py"]
    assert [(path, reason) for path, reason in found.unmapped] == [
        (far, "its path has more than 500 characters: put it nearer to the directory")
    ]


def test_who_fills_a_folder_keeps_nobody_elses_from_being_evaluated(tmp_path, monkeypatch, write):
    monkeypatch.setattr("harness.solution.entries.MAX_ENTRIES", 20)
    write(MODEL, "1_19.py")
    for level, (author, count) in enumerate({"alice": 2, "mallory": 25, "trent": 8, "zoe": 9}.items(), start=1):
        (tmp_path / author / f"level{level}").mkdir(parents=True)
        for index in range(count):
            (tmp_path / author / f"level{level}" / f"{index}_{author}.py").write_text(MODEL)
    found = discover(tmp_path)
    authors = {solution.name.partition("/")[0] for solution in found.solutions}
    assert authors == {"1_19.py", "alice", "trent"}
    assert {path.name: reason for path, reason in found.unmapped if path.suffix == ""} == dict.fromkeys(
        ["mallory", "zoe"],
        "too much lies in it: the directory may hold 20 files, or 16,777,216 characters in their paths",
    )


def test_a_folder_of_too_long_paths_is_left_out(tmp_path, monkeypatch, write):
    """To list 5,000 files below folders with the longest names took a gigabyte."""
    write(MODEL, "1_19.py")
    (tmp_path / ("a" * 200) / ("b" * 200)).mkdir(parents=True)
    assert len(discover(tmp_path).solutions) == 1
    monkeypatch.setattr("harness.solution.entries.MAX_PATH_CHARACTERS", 500)
    found = discover(tmp_path)
    assert len(found.solutions) == 1 and [path.name for path, _ in found.unmapped] == ["a" * 200]


def test_includes_and_include_paths_are_looked_up_so_many_times_only():
    source = "".join(f'#include "x{i}.h"\n' for i in range(2_000))
    with pytest.raises(OSError, match="name more than 100,000 places"):
        local_includes(source, None, [Path(f"/usr/include/{i}") for i in range(500)])


def test_a_rule_is_not_crowded_out_by_findings_of_graver_ones(write):
    """A reward that excludes lower precision paid for it behind 200 files that were opened."""
    found = findings(read_solution(write("open('x')\n" * 300 + "import torch\ny = torch.zeros(3).half()\n")))
    assert len(found) == MAX_FINDINGS and {"files", "lower_precision"} <= {finding.rule for finding in found}


def test_links_in_a_directory_are_looked_at_for_seconds_at_most(tmp_path, monkeypatch):
    """190,000 links behind long ones took hours, before anything was evaluated."""
    (tmp_path / "1_19.py").write_text("class ModelNew: pass")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    assert [path.name for path, _ in discover(tmp_path).unmapped] == ["link"]
    monkeypatch.setattr("harness.solution.includes._LOOKUPS_S", -1.0)
    monkeypatch.setattr("harness.solution.links.reached", lambda *_: pytest.fail("it is looked at"))
    found = discover(tmp_path)
    assert [path.name for path, _ in found.unmapped] == ["link"] and len(found.solutions) == 1


def test_a_link_out_of_a_directory_is_not_followed_where_a_solution_has_two_names(tmp_path, monkeypatch):
    folder, look, seen = tmp_path / "solutions", os.stat, []
    folder.mkdir()
    (folder / "1_19.py").write_text("class ModelNew: pass")
    os.link(folder / "1_19.py", folder / "notes.txt")
    (folder / "out").symlink_to(tmp_path)

    def noted(path, **named):
        seen.extend([str(path)] if named.get("follow_symlinks", True) else [])
        return look(path, **named)

    monkeypatch.setattr(os, "stat", noted)
    assert len(discover(folder).solutions) == 1 and str(folder / "out") not in seen


def test_of_a_long_line_with_an_error_its_beginning_is_told(tmp_path):
    """It did not fit the answer of who parses it, and was told as a lack of memory."""
    (path := tmp_path / "1_19.py").write_bytes(b"x = )" + b"\x01" * 3_900_000)
    error = apart("harness.solution.source_facts:python", str(path), str(tmp_path))["error"]
    assert error.startswith("SyntaxError: unmatched ')' (1_19.py, line 1)") and len(error) < 1000
