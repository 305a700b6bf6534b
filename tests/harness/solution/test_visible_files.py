"""Files that one solution may see: its own, never a neighbour's."""

import json
from dataclasses import replace

import pytest

from harness.isolated_call import TooMuch
from harness.job import decode_solution, encode_solution
from harness.problem.module import ProblemId
from harness.solution.discover import discover, read_file
from harness.solution.visible_files import KEPT_BY_RUNS, own_files, own_texts
from kernelbench.cli.results import report
from kernelbench.review.record import LOG as REVIEWS
from kernelbench.run import CONFIG, LOG
from kernelbench.run_files.folder import WORKSPACES
from kernelbench.run_files.sources import REFERENCES, SOURCES, TRAJECTORY
from kernelbench.run_files.unevaluated import UNEVALUATED
from kernelbench.scheduling.traces import CALLS
from kernelbench.solvers.backend.local import TRIALS
from kernelbench.solvers.task import ARTEFACTS
from kernelbench.views.leaderboard import AS_JSON, AS_MARKDOWN

NAMES_ALL = "import matmul_kernel, impl, helper\nx = 'matmul_kernel.py', 'impl.py', 'helper.py', 'b/matmul_kernel.py'"


@pytest.fixture
def seen(tmp_path):
    """Writes a directory of solutions and returns the files that a solution of it may see, here and in the judge."""

    def write(name, names=None, **files):
        for file, text in files.items():
            path = tmp_path / (file if "/" in file else file.replace("__", "/").replace("_py", ".py"))
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        found = discover(tmp_path, names=names or {})
        (solution,) = (one for one in found.solutions if one.name == name)
        there = decode_solution(json.loads(json.dumps(encode_solution(solution))))
        own = own_files(solution)
        assert own_files(there) == own and len(there.neighbours) <= len(solution.neighbours)
        return [path.relative_to(tmp_path).as_posix() for path in own]

    return write


def test_a_file_named_after_a_problem_is_nobody_elses(seen):
    names = {"matmul_kernel": ProblemId(1, 2), "spy": ProblemId(1, 3)}
    own = seen("spy.py", names, spy_py=NAMES_ALL, matmul_kernel_py="", helper_py="")
    assert own == ["spy.py", "helper.py"]


@pytest.mark.parametrize("read", [read_file, lambda path, **more: discover(path, **more).solutions[0]])
def test_beside_a_file_evaluated_alone_a_file_named_after_a_problem_is_nobody_elses_either(tmp_path, read):
    names = {"matmul_kernel": ProblemId(1, 2), "spy": ProblemId(1, 3)}
    (tmp_path / "b").mkdir()
    for name in ("spy.py", "helper.py", "impl.py", "matmul_kernel.py", "b/matmul_kernel.py"):
        (tmp_path / name).write_text(NAMES_ALL if name == "spy.py" else "")
    (tmp_path / "matmul_kernel_s2.py").symlink_to("impl.py")
    own = own_files(read(tmp_path / "spy.py", names=names))
    assert [path.name for path in own] == ["spy.py", "helper.py", "impl.py"], "a link is no solution, nor is its file"


def test_a_link_with_the_name_of_a_solution_takes_nobody_a_file(tmp_path, seen):
    """Its file was nobody else's: whose helper it was could not be evaluated."""
    (tmp_path / "1_20.py").symlink_to("impl.py")
    files = {"1_19_py": NAMES_ALL, "impl_py": "", "helper_py": ""}
    assert seen("1_19.py", **files) == ["1_19.py", "helper.py", "impl.py"]
    (tmp_path / "1_21.py").symlink_to("1_19.py")
    assert seen("1_19.py", **files) == ["1_19.py", "helper.py", "impl.py"]
    assert [solution.name for solution in discover(tmp_path).solutions] == ["1_19.py"]


def test_a_file_left_out_for_its_claim_is_nobody_elses(seen):
    names = {"matmul_kernel": ProblemId(1, 2)}
    own = seen("1_19.py", names, **{"1_19_py": NAMES_ALL, "matmul_kernel_py": "", "b__matmul_kernel_py": ""})
    assert own == ["1_19.py"]


def test_the_judge_learns_of_the_neighbours_that_a_solution_names_only(tmp_path):
    for number in range(1, 50):
        (tmp_path / f"1_{number}.py").write_text("beside = '1_7.py'")
    solution = discover(tmp_path).solutions[0]
    assert len(solution.neighbours) == 49
    assert encode_solution(solution)["neighbours"] == [str(tmp_path / "1_7.py")]


def test_a_source_that_names_more_neighbours_than_a_message_holds_is_refused(tmp_path, monkeypatch):
    """The message ended the judge, twice, and who sent it was not evaluated."""
    monkeypatch.setattr("harness.job.MAX_INCLUDED_FILES", 3)
    for number in range(1, 6):
        (tmp_path / f"1_{number}.py").write_text("beside = '1_1.py', '1_2.py'")
    (tmp_path / "1_6.py").write_text("beside = '1_1.py', '1_2.py', '1_3.py', '1_4.py'")
    first, *_, last = discover(tmp_path).solutions
    assert len(encode_solution(first)["neighbours"]) == 2 and not encode_solution(first)["refused"]
    assert encode_solution(last)["refused"] == "it names 4 other solutions, and the limit is 3"
    assert encode_solution(last)["neighbours"] == []


def test_of_a_source_that_is_refused_the_judge_reads_nothing(tmp_path):
    for number in range(1, 3):
        (tmp_path / f"1_{number}.py").write_text("beside = '1_2.py'")
    solution = replace(discover(tmp_path).solutions[0], refused="it is too large")
    assert encode_solution(solution)["neighbours"] == []


def test_a_source_that_this_process_cannot_read_is_refused(tmp_path, monkeypatch):
    """The judge may have the memory to read it: what stands behind a neighbour's link would be the solution's own."""
    for number in range(1, 5):
        (tmp_path / f"1_{number}.py").write_text("beside = '1_2.py'")
    solution = discover(tmp_path).solutions[0]

    def lacks_memory(*_):
        raise TooMuch("more than 1 GiB of memory")

    monkeypatch.setattr("harness.solution.visible_files.apart", lacks_memory)
    assert encode_solution(solution)["refused"] == "to read it takes more than 1 GiB of memory"
    assert own_files(solution) == [solution.path]


def test_hidden_files_and_those_of_a_run_are_nobodys(seen):
    """Keys lie in the former, and results of an earlier evaluation in the latter."""
    names = "'.env', '.git/config', 'run/results.jsonl', 'run/sources/x.h', 'run', 'table.txt'"
    files = {".env": "KEY", ".git__config": "", "run__results.jsonl": "", "run__config.json": "{}", "table.txt": ""}
    assert seen("1_19.py", **{"1_19_py": f"names = {names}"}, **files) == ["1_19.py", "table.txt"]


def test_a_file_that_is_a_suites_by_its_name_and_no_solution_by_its_comment_is_a_neighbours(seen):
    files = {"1_19_py": "x = 'matmul_kernel.py'", "matmul_kernel_py": "# kb: device=gpu"}
    assert seen("1_19.py", {"matmul_kernel": ProblemId(1, 1)}, **files) == ["1_19.py"]


def test_compiled_headers_are_nobodys(seen):
    """GCC takes one in place of the header that everybody reads, and follows the pointers in it."""
    files = {"own.h": "int a;", "own.h.gch": "gpch", "b.gch/any": "gpch"}
    code = '#include "own.h"\n//# "own.h.gch" "b.gch/any"\n'
    assert seen("1_19.cpp", **{"1_19.cpp": code}, **files) == ["1_19.cpp", "own.h"]
    assert seen("1_20.py", **{"1_20_py": "x = 'own.h', 'own.h.gch', 'b.gch/any'"}, **files) == ["1_20.py", "own.h"]


def test_what_python_keeps_of_a_neighbour_is_nobodys(seen):
    files = {"__pycache__/1_20.cpython-311.pyc": "", "table.txt": ""}
    own = seen("1_19.py", **{"1_19_py": "names = '__pycache__/1_20.cpython-311.pyc', 'table.txt'"}, **files)
    assert own == ["1_19.py", "table.txt"]


def test_beside_its_results_a_solution_sees_none_of_them(tmp_path, seen):
    """Its helpers it sees: whoever put two files of a run there kept them from all."""
    files = {"results.jsonl": "", "config.json": "{}", "helper_py": "", "sources__x.h": "", "trajectory.jsonl": ""}
    files |= {"leaderboard.json": "", "memory.jsonl": ""}
    names = "'results.jsonl', 'config.json', 'sources/x.h', 'trajectory.jsonl', 'leaderboard.json', 'memory.jsonl'"
    assert seen("1_19.py", **{"1_19_py": f"import helper\nx = {names}"}, **files) == ["1_19.py", "helper.py"]
    assert KEPT_BY_RUNS == {
        CONFIG, LOG, SOURCES, REFERENCES, TRAJECTORY, CALLS, UNEVALUATED, REVIEWS, AS_JSON, AS_MARKDOWN,
        report._DEFAULT, WORKSPACES, ARTEFACTS, TRIALS,
    }  # fmt: skip


HIDDEN = "pin = 4711"
NAMES_HIDDEN = """x = '#include ".env"', '.env', 'impl.py', '1_20_other.py', 'run/results.jsonl', 'own.cuh'"""


def test_a_record_tells_no_digest_and_no_word_of_what_a_solution_may_not_see(tmp_path):
    """A reader of records could guess a secret until its digest agrees."""
    for name, text in {
        "1_19_spy.py": NAMES_HIDDEN, ".env": HIDDEN, "1_20_other.py": HIDDEN, "own.cuh": "int a;",
        "run/results.jsonl": HIDDEN, "run/config.json": "{}",
    }.items():  # fmt: skip
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)

    def spy():
        (one,) = (one for one in discover(tmp_path).solutions if one.name == "1_19_spy.py")
        return one

    before = spy().helpers
    assert before and not any("pin" in text for text in own_texts(spy()))
    for name in (".env", "1_20_other.py", "run/results.jsonl"):
        (tmp_path / name).write_text("pin = 815")
        assert spy().helpers == before, name
    (tmp_path / "own.cuh").write_text("int b;")
    assert spy().helpers != before


@pytest.mark.parametrize(
    "name, source, ghost",
    [("1_19.py", "try: import ghost\nexcept ImportError: pass", "ghost.py"),
     ("1_19.py", "'ghost.cuh'", "ghost.cuh"),
     ("1_19.cpp", '#if __has_include("ghost.h")\n#include "ghost.h"\n#endif', "ghost.h")],
    ids=["imported", "named", "included"],
)  # fmt: skip
def test_a_file_that_comes_after_discovery_is_not_seen(tmp_path, name, source, ghost):
    """It was there for the build and the calls, gone at the end, and in no digest."""
    (tmp_path / name).write_text(source)
    (before,) = discover(tmp_path).solutions
    (tmp_path / ghost).write_text("")
    (after,) = discover(tmp_path).solutions
    assert own_files(before) == [tmp_path / name] and own_files(after) == [tmp_path / name, tmp_path / ghost]


def test_links_by_the_names_of_a_runs_files_are_not_followed_and_make_a_run(tmp_path):
    """One that led to a place that never answers held whoever read the sources."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "1_19.py").write_text("open('sub/table.txt')")
    (tmp_path / "sub/table.txt").write_text("1")
    assert len(own_files(read_file(tmp_path / "1_19.py"))) == 2
    for name in (CONFIG, LOG):
        (tmp_path / "sub" / name).symlink_to("nowhere")
    assert len(own_files(read_file(tmp_path / "1_19.py"))) == 1
