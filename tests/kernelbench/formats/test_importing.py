"""Archives of others' kernels: what is written of them, and what of them is never believed or run."""

import json
import os

import pytest
from click.testing import CliRunner

from harness.problem.module import find_problems
from harness.solution.discover import discover
from kernelbench.cli import main
from kernelbench.formats import claims, importing
from kernelbench.formats import cuda_l1 as cuda_l1_reader
from kernelbench.formats.archive import ArchiveError, ReadOptions, text_of

REFERENCE = (
    "import torch\nclass Model(torch.nn.Module): pass\ndef get_inputs(): return []\ndef get_init_inputs(): return []\n"
)
KERNEL = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x): return x.clamp(min=0)\n"
TRAP = "raise SystemExit('run')\n"


def task(number, code=KERNEL, **scores):
    scores = {"score_default": 2.5, **scores}
    return {"level_id": 1, "task_id": number, "ref_code": REFERENCE, "custom_code": code, **scores}


@pytest.fixture
def cuda_l1(tmp_path):
    def written(*tasks):
        path = tmp_path / "h100.jsonl"
        path.write_text("".join(json.dumps(one) + "\n" for one in tasks))
        return path

    return written


def imported(path, out, **options):
    return importing.import_archive(path, out, options=ReadOptions(**options))


def solutions_in(made):
    return {str(s.problem): s for s in discover(made.path / importing.SOLUTIONS).solutions}


def test_solutions_problems_and_claims_of_cuda_l1(cuda_l1, tmp_path):
    made = imported(cuda_l1(task(19, score_cuda_graph=1.5), task(20)), tmp_path / "out")
    found = solutions_in(made)
    assert set(found) == {"1/19", "1/20"} and found["1/19"].path.read_text() == KERNEL
    assert [str(file.id) for file in find_problems(made.path / importing.PROBLEMS)] == ["1/19", "1/20"]
    first, _ = claims.load(made.path / claims.LOG)
    assert (first.problem, first.solution, first.sha256) == ("1/19", found["1/19"].name, found["1/19"].sha256)
    assert first.speedups == {"eager": 2.5, "cuda_graph": 1.5} and first.over == "eager"


def test_a_line_that_defines_its_task_otherwise_is_left_out(cuda_l1, tmp_path):
    """Its claim was taken for one about the first definition."""
    made = imported(cuda_l1(task(19), {**task(19), "ref_code": REFERENCE + "# another"}), tmp_path / "out")
    assert len(made.claims) == 1
    assert made.left_out == [("line 2", "1/19 is defined otherwise in an earlier line")]


def test_a_claim_that_repeats_is_refused(cuda_l1, tmp_path):
    """Each counted as one more kernel, and had its source parsed again."""
    made = imported(cuda_l1(task(19), task(20)), tmp_path / "out")
    log = made.path / claims.LOG
    log.write_text(log.read_text() + log.read_text())
    with pytest.raises(claims.ClaimsError, match="line 3, is a second claim of 1/19"):
        claims.load(log)


def test_tasks_without_a_solution_are_left_out_with_their_line(cuda_l1, tmp_path):
    made = imported(cuda_l1(task(1, None, score_default=None), task(2, "None"), task(3)), tmp_path / "out")
    assert made.left_out == [("line 1", "1/1 has no solution"), ("line 2", "1/2 has no solution, and a claim of 2.5x")]
    assert len(made.claims) == 1 and made.problems == 3


@pytest.mark.parametrize("claimed", [None, "fast", float("nan"), float("inf"), 0, -1, True])
def test_a_claim_that_is_no_speedup_is_none(cuda_l1, tmp_path, claimed):
    made = imported(cuda_l1(task(1, score_default=claimed)), tmp_path / "out")
    assert made.claims[0].speedup is None


def test_nothing_is_run(cuda_l1, tmp_path):
    made = imported(cuda_l1({**task(1, TRAP), "ref_code": TRAP}), tmp_path / "out")
    assert len(made.claims) == 1


def test_two_solutions_of_a_problem_are_two_samples(cuda_l1, tmp_path):
    made = imported(cuda_l1(task(1), task(1, KERNEL + "#")), tmp_path / "out")
    assert [claim.solution.rpartition("_")[2] for claim in made.claims] == ["s0.py", "s1.py"]


@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["plain", "with a byte order mark"])
def test_a_source_has_no_say_in_what_it_solves(cuda_l1, tmp_path, mark):
    made = imported(cuda_l1(task(1, mark + "# kb: problem=1/2 sample=7 device=cpu\n" + KERNEL)), tmp_path / "out")
    (only,) = discover(made.path / importing.SOLUTIONS).solutions
    assert (str(only.problem), only.sample) == ("1/1", 0) and only.sha256 == made.claims[0].sha256
    compile(only.path.read_bytes(), str(only.path), "exec")


def test_a_source_that_cannot_be_encoded_is_left_out(cuda_l1, tmp_path):
    made = imported(cuda_l1(task(1, "x = '\ud800'"), task(2)), tmp_path / "out")
    assert made.left_out == [("line 1", "its source cannot be encoded as UTF-8")] and len(made.claims) == 1


def test_many_solutions_of_one_problem_get_the_next_free_samples(cuda_l1, tmp_path):
    path = tmp_path / "claims.csv"
    (tmp_path / "k.py").write_text(KERNEL)
    path.write_text("problem,file,speedup,sample\n" + "1/1,k.py,2,3\n" * 3 + "1/1,k.py,2,\n" * 4)
    made = imported(path, tmp_path / "out")
    taken = [int(claim.solution.rpartition("_s")[2].removesuffix(".py")) for claim in made.claims]
    assert taken == [3, 4, 5, 0, 1, 2, 6]


def test_a_solution_for_which_no_sample_number_is_left_is_left_out(cuda_l1, tmp_path):
    """One more than the largest would be read as sample 0, and keep that one out."""
    (tmp_path / "k.py").write_text(KERNEL)
    rows = ["problem,file,speedup,sample", *["1/1,k.py,2,999999999"] * 2, "1/1,k.py,2,0"]
    (tmp_path / "claims.csv").write_text("\n".join(rows) + "\n")
    made = imported(tmp_path / "claims.csv", tmp_path / "out")
    assert [claim.solution.rpartition("_s")[2] for claim in made.claims] == ["999999999.py", "0.py"]
    assert [reason for _, reason in made.left_out] == [
        "no sample number up to 999,999,999 is left for it"
    ]


@pytest.mark.slow
def test_archives_beyond_all_measure_are_refused_by_where(cuda_l1, tmp_path, monkeypatch):
    """Whatever they claim to hold: one line of 30 GB, more lines than anybody reads, sources that add up."""
    table = tmp_path / "claims.csv"
    for path in (cuda_l1(task(1)), table):
        with path.open("a") as file:
            file.truncate(30 << 30)
        with pytest.raises(ArchiveError, match=r"line [12]: the most are 200,000 lines"):
            imported(path, tmp_path / "out", **({"level": 1} if path is table else {}))
    table.write_text("problem,file,speedup\n" + "1/1,none.py,1\n" * 200_000)
    with pytest.raises(ArchiveError, match="line 200001: the most are"):
        imported(table, tmp_path / "out")
    table.write_text("problem,file,speedup" + ",x" * 1000)
    with pytest.raises(ArchiveError, match="1,003 columns; the most is 200"):
        imported(table, tmp_path / "out")
    (tmp_path / "k.py").write_text(KERNEL)
    table.write_text("problem,file,speedup\n" + "1/1,k.py,2\n" * 4)
    monkeypatch.setattr("kernelbench.formats.archive.MAX_ARCHIVE_BYTES", 3 * len(KERNEL))
    with pytest.raises(ArchiveError, match="which line 5 exceeds"):
        imported(table, tmp_path / "out")
    (tmp_path / "k.py").write_text("#" + "\N{GRINNING FACE}" * len(KERNEL))  # of four bytes each
    with pytest.raises(ArchiveError, match="which line 2 exceeds"):
        imported(table, tmp_path / "out")


@pytest.mark.parametrize("sample", ["-1", "1.5", "²", "1" * 10, "9" * 5000])
def test_a_sample_that_is_no_small_number_is_refused(tmp_path, sample):
    (tmp_path / "k.py").write_text(KERNEL)
    (tmp_path / "claims.csv").write_text(f"problem,file,speedup,sample\n1/1,k.py,2,{sample}\n")
    with pytest.raises(ArchiveError, match="line 2: sample '.* is no number from 0"):
        imported(tmp_path / "claims.csv", tmp_path / "out")


NUMBERED = '{"level_id": %s, "task_id": %s, "custom_code": ""}'


@pytest.mark.parametrize(
    "line", ["{", "[]", "{}", "[" * 100_000, NUMBERED % ("true", "1"), NUMBERED % ("1", '"x"')],
    ids=["open", "list", "empty", "deep", "level true", "text for a number"],
)  # fmt: skip
def test_a_line_that_is_no_task_is_named(tmp_path, line):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(task(1)) + "\n" + line + "\n")
    with pytest.raises(ArchiveError, match="line 2,"):
        imported(path, tmp_path / "out")


@pytest.fixture
def table(tmp_path):
    """A table of ten kernels, and what it names beside it."""
    (tmp_path / "kernels").mkdir()
    lines = ["problem,file,claimed_speedup"]
    for number in range(19, 29):
        (tmp_path / "kernels" / f"{number}.py").write_text(KERNEL)
        lines.append(f"1/{number},kernels/{number}.py,{number / 10}x")
    path = tmp_path / "claims.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_table_of_ten_kernels(table, tmp_path):
    made = imported(table, tmp_path / "out")
    assert made.form == "csv" and len(solutions_in(made)) == 10 and made.problems == 0
    assert [claim.speedup for claim in made.claims] == [number / 10 for number in range(19, 29)]


@pytest.mark.parametrize("suffix, mark", [(".py", "#"), (".dsl", "#"), (".cu", "//"), (".cpp", "//")])
def test_a_source_of_any_kind_that_names_a_problem_has_no_say(tmp_path, suffix, mark):
    (tmp_path / f"kernel{suffix}").write_text(f"{mark} kb: problem=9/9 sample=4\n")
    (tmp_path / "claims.csv").write_text(f"problem,file,speedup\n1/19,kernel{suffix},2\n")
    made = solutions_in(imported(tmp_path / "claims.csv", tmp_path / "out"))
    assert set(made) == {"1/19"} and made["1/19"].sample == 0


@pytest.mark.parametrize(
    "row, reason",
    [("1/1,../outside.py,2", "outside"), ("1/1,gone.py,2", "cannot be read"), ("1/1,note.txt,2", "no solution")],
)
def test_a_file_that_is_no_kernel_of_the_table_is_left_out(tmp_path, row, reason):
    folder = tmp_path / "archive"
    folder.mkdir()
    (tmp_path / "outside.py").write_text(KERNEL)
    (folder / "note.txt").write_text("text")
    (folder / "claims.csv").write_text(f"problem,file,speedup\n{row}\n")
    made = imported(folder / "claims.csv", tmp_path / "out")
    ((place, why),) = made.left_out
    assert place == "line 2" and reason in why and not made.claims


@pytest.mark.parametrize(
    "text, named",
    [("problem,file\n1/1,a.py\n", "speedup"), ("file,speedup\na.py,1\n", "problem"), ("", "problem"),
     ("problem,file,speedup\nrelu,a.py,1\n", "relu"), ("problem,file,speedup,sample\n1/1,a.py,1,-1\n", "sample")],
)  # fmt: skip
def test_a_malformed_table_says_where(tmp_path, text, named):
    (tmp_path / "claims.csv").write_text(text)
    with pytest.raises(ArchiveError, match=named):
        imported(tmp_path / "claims.csv", tmp_path / "out")


STATISTICS = {"mean": 2.0, "std": 0.01, "min": 1.9, "max": 2.2, "num_trials": 100}


@pytest.fixture
def kernelbench_run(tmp_path):
    folder = tmp_path / "my_run"
    folder.mkdir()
    for sample in range(2):
        (folder / f"level_1_problem_19_sample_{sample}_kernel.py").write_text(KERNEL + "#" * sample)
    failed = {"compiled": False, "correctness": False, "metadata": {}, "runtime": -1.0, "runtime_stats": {}}
    right = {"compiled": True, "correctness": True, "runtime": 2.0, "runtime_stats": STATISTICS}
    entries = [{"sample_id": 0, **failed, **right}, {"sample_id": 1, **failed}]
    (folder / "eval_results.json").write_text(json.dumps({"19": entries}))
    return folder


def test_a_run_directory_of_kernelbench(kernelbench_run, tmp_path):
    baseline = tmp_path / "baseline_time_torch.json"
    baseline.write_text(json.dumps({"level1": {"19_ReLU.py": {**STATISTICS, "mean": 3.0}}}))
    made = imported(kernelbench_run, tmp_path / "out", baseline=baseline)
    right, wrong = made.claims
    assert (right.status, right.ms, right.speedups) == ("ok", 2.0, {"eager": 1.5})
    assert (wrong.status, wrong.ms, wrong.speedup) == ("build_error", None, None)
    assert right.sha256 != wrong.sha256


def test_two_files_of_one_sample_are_one_kernel(kernelbench_run, tmp_path):
    (kernelbench_run / "level_01_problem_019_sample_00_kernel.py").write_text(KERNEL)
    made = imported(kernelbench_run, tmp_path / "out")
    assert len(made.claims) == 2
    assert made.left_out == [("level_1_problem_19_sample_0_kernel.py", "another file is sample 0 of 1/19 too")]


def test_a_run_directory_without_results_claims_nothing(kernelbench_run, tmp_path):
    (kernelbench_run / "eval_results.json").unlink()
    made = imported(kernelbench_run, tmp_path / "out")
    assert [claim.status for claim in made.claims] == [None, None]


def kb_import(*arguments):
    return CliRunner().invoke(main, ["import", *map(str, arguments)])


def test_the_command_says_what_comes_next(cuda_l1, tmp_path):
    done = kb_import(cuda_l1(task(1, None), task(2)), "-o", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert "1 solution(s)" in done.output and "1/1 has no solution" in done.output
    assert f"kb eval --solutions {tmp_path / 'out' / 'solutions'} --problem-dir" in done.output


def test_many_that_are_left_out_for_one_reason_are_said_once(cuda_l1, tmp_path):
    done = kb_import(cuda_l1(*(task(1, None) for _ in range(8)), task(2)), "-o", tmp_path / "out")
    assert "left out (8): line 1, line 2, line 3, line 4, line 5 and 3 more: 1/1 has no solution" in done.output


def test_wrong_usage(cuda_l1, table, tmp_path):
    assert "no such file" in kb_import(tmp_path / "gone", "-o", tmp_path / "out").output
    (tmp_path / "notes.txt").write_text("text")
    assert "name one with --format" in kb_import(tmp_path / "notes.txt", "-o", tmp_path / "out").output
    assert kb_import(table, "-o", tmp_path / "out").exit_code == 0
    again = kb_import(table, "-o", tmp_path / "out")
    assert again.exit_code == 2 and "is not empty" in again.output
    (tmp_path / "eval_results.json").write_text("{}")
    assert "give --level" in kb_import(tmp_path / "eval_results.json", "-o", tmp_path / "run").output


def test_of_two_who_import_into_one_folder_one_does(cuda_l1, table, tmp_path, monkeypatch):
    """Both said that they had, and their solutions lay side by side with the claims of one."""
    read, first = cuda_l1_reader.read, []

    def while_another_imports(*given):
        first.append(imported(table, tmp_path / "out"))
        return read(*given)

    monkeypatch.setattr(cuda_l1_reader, "read", while_another_imports)
    with pytest.raises(ArchiveError, match="is not empty"):
        imported(cuda_l1(task(19)), tmp_path / "out")
    assert claims.load(tmp_path / "out" / claims.LOG) == first[0].claims and len(solutions_in(first[0])) == 10


def test_a_killed_import_leaves_nothing_that_looks_like_an_archive(cuda_l1, tmp_path, monkeypatch):
    """`kb eval` took a part of its solutions for all of them."""
    write, seen = importing.write_whole, []

    def looked_at(path, content):
        write(path, content)
        seen.extend(entry.name for entry in (tmp_path / "out").iterdir() if not entry.name.startswith("."))

    monkeypatch.setattr(importing, "write_whole", looked_at)
    made = imported(cuda_l1(task(19)), tmp_path / "out")
    assert not seen and set(solutions_in(made)) == {"1/19"}
    assert {path.name for path in made.path.iterdir()} == {"solutions", "problems", claims.LOG, "archive.json"}


@pytest.mark.parametrize("last", [claims.LOG, "problems", "solutions"])
def test_an_import_that_is_interrupted_at_its_end_leaves_nothing(cuda_l1, tmp_path, monkeypatch, last):
    rename = os.rename

    def interrupted(path, to):
        if to.name == last:
            raise KeyboardInterrupt
        rename(path, to)

    monkeypatch.setattr(os, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        imported(cuda_l1(task(19)), tmp_path / "out")
    assert not any((tmp_path / "out").iterdir())


def test_an_interrupted_import_leaves_nothing(cuda_l1, tmp_path, monkeypatch):
    """Its solutions would look like all that the archive holds."""
    write = importing.write_whole

    def interrupted(path, content):
        write(path, content)
        if path.name == claims.LOG:
            raise KeyboardInterrupt

    monkeypatch.setattr(importing, "write_whole", interrupted)
    with pytest.raises(KeyboardInterrupt):
        imported(cuda_l1(task(19)), tmp_path / "out")
    assert not any((tmp_path / "out").iterdir())


def test_a_link_out_of_the_archive_and_a_pipe_are_left_out(tmp_path):
    (tmp_path / "secret.txt").write_text("kept")
    archive = tmp_path / "archive"
    archive.mkdir()
    (archive / "level_1_problem_19_sample_0_kernel.py").write_text(KERNEL)
    (archive / "level_1_problem_19_sample_1_kernel.py").symlink_to(tmp_path / "secret.txt")
    os.mkfifo(archive / "level_1_problem_19_sample_2_kernel.py")
    made = imported(archive, tmp_path / "out")
    assert [name for name, _ in made.left_out] == [
        "level_1_problem_19_sample_1_kernel.py", "level_1_problem_19_sample_2_kernel.py",
    ]  # fmt: skip
    assert "outside" in made.left_out[0][1] and set(solutions_in(made)) == {"1/19"}
    assert "kept" not in "".join(path.read_text() for path in (tmp_path / "out").rglob("*.py"))


@pytest.mark.timeout(60)
def test_a_file_that_is_not_there_is_asked_for_once(tmp_path):
    """Each missing part of its path was, through all links of the archive."""
    long = "/".join(["a"] * 1_900)
    (tmp_path / "a").symlink_to(".")
    for number in range(38):
        (tmp_path / f"l{number}").symlink_to("a/" * 1_900 + (f"l{number + 1}" if number < 37 else "nothing"))
    assert all("cannot be read" in text_of(tmp_path, tmp_path / f"l0/{long}")[1] for _ in range(20))


@pytest.mark.parametrize("text", ["[" * 200_000, '{"1": {"0": {"runtime": []}}}', '{"1": [1]}', '{"x": 1e999}'])
def test_results_of_other_types_are_one_clear_error(tmp_path, text):
    (tmp_path / "eval_results.json").write_text(text)
    done = kb_import(tmp_path / "eval_results.json", "--level", 1, "-o", tmp_path / "run")
    assert done.exit_code == 2 and "Traceback" not in done.output, done.output
