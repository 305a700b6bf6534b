"""Discovery: which files are solutions, of which kind, and of which problem."""

import errno
import os
import unicodedata
from pathlib import Path

import pytest

from harness.integrity.static import findings
from harness.limits import HEAD_BYTES
from harness.problem.module import ProblemId
from harness.solution.discover import SolutionError, discover, name_shown, read_solution, readable
from harness.solution.visible_files import own_files

INLINE_CUDA = "from torch.utils.cpp_extension import load_inline\nm = load_inline('n', '', cuda_sources='x')"
INLINE_CPP = "from torch.utils import cpp_extension\nm = cpp_extension.load_inline('n', 'src')"
LOADED_CUDA = "import torch.utils.cpp_extension as e\nm = e.load('n', ['kernel.cu'])"


def put(root, name, text=""):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    "name, text, problem, sample",
    [
        ("run/level_1_problem_19_sample_3_kernel.py", "", "1/19", 3),
        ("2_76.py", "", "2/76", 0),
        ("1_19.cu", "", "1/19", 0),
        ("1_19_s2.py", "", "1/19", 2),
        ("1_19_relu.py", "", "1/19", 0),
        ("1_19_relu_s3.py", "", "1/19", 3),
        ("level1/19.cu", "", "1/19", 0),
        ("level1/019_relu.py", "", "1/19", 0),
        ("level3/43_attention_s2.cpp", "", "3/43", 2),
        ("level1/19_s4.py", "", "1/19", 4),
        ("anything.py", "# kb: problem=1/19 sample=3", "1/19", 3),
        ("anything.py", "\ufeff# kb: problem=1/19 sample=3", "1/19", 3),  # as some editors begin a file
        ("level2/7.cu", "\n// kb: problem=1/19", "1/19", 0),
        ("level2/7_s5.cu", "/* kb: problem=1/19 */", "1/19", 5),
        ("level2/7_s5.cu", "/* kb: problem=1/19 sample=2 */", "1/19", 2),
        ("attempt_s2.py", "# kb: problem=1/19", "1/19", 2),
        ("level_1_problem_19_sample_3_kernel.py", "# kb: problem=1/19", "1/19", 3),
        ("level2/7.py", "# kb: sample=8", "2/7", 8),
    ],
)
def test_files_map_to_problems_and_the_comment_wins(tmp_path, name, text, problem, sample):
    put(tmp_path, name, text)
    (solution,) = discover(tmp_path).solutions
    assert (str(solution.problem), solution.sample, solution.name) == (problem, sample, name)


def test_a_comment_that_is_cut_where_reading_ends_says_nothing(tmp_path):
    """An attempt of a solver had the number of its first one so: of ``sample=12`` there was ``sample=1``."""
    comment = "# kb: problem=1/23 sample=1"
    text = "#" + "x" * (HEAD_BYTES - len(comment) - 2) + f"\n{comment}2\n"
    put(tmp_path, "level1/19_s12.py", text)
    (solution,) = discover(tmp_path).solutions
    assert (str(solution.problem), solution.sample) == ("1/19", 12)
    put(tmp_path, "level1/19_s12.py", text[3:])
    (solution,) = discover(tmp_path).solutions
    assert (str(solution.problem), solution.sample) == ("1/23", 12), "it is whole"


@pytest.mark.parametrize(
    "name, text, language, device",
    [
        ("1_1.cu", "", "cuda", "cuda"),
        ("1_1.cpp", "", "cpp", "cpu"),
        ("1_1.py", "import torch", "pytorch", "any"),
        ("1_1.py", "import triton.language as tl", "triton", "cuda"),
        ("1_1.py", INLINE_CUDA, "cuda", "cuda"),
        ("1_1.py", LOADED_CUDA, "cuda", "cuda"),
        ("1_1.py", INLINE_CPP, "cpp", "any"),
        ("1_1.py", "# kb: device=cpu\n" + INLINE_CPP, "cpp", "cpu"),
        ("1_1.py", "text = 'import triton'  # import triton", "pytorch", "any"),
        ("1_1.py", "this is no python", "pytorch", "any"),
    ],
)
def test_language_and_device_are_told_from_the_parsed_source(tmp_path, name, text, language, device):
    solution = read_solution(put(tmp_path, name, text))
    assert (solution.language, solution.device) == (language, device)


def test_a_source_of_somebody_else_has_no_settings(tmp_path):
    path = tmp_path / "1_19.py"
    path.write_text("# kb: problem=2/3 sample=x device=cuda\nimport torch")
    solution = read_solution(path, settings=False)
    assert (str(solution.problem), solution.sample, solution.device) == ("1/19", 0, "any")


def test_a_link_that_leads_nowhere_is_listed(tmp_path):
    put(tmp_path, "1_19.py")
    (tmp_path / "1_23.py").symlink_to(tmp_path / "gone.py")
    found = discover(tmp_path)
    assert [path.name for path, _ in found.unmapped] == ["1_23.py"] and len(found.solutions) == 1


def test_a_link_or_a_path_that_is_longer_than_the_system_takes_is_listed(tmp_path):
    """One of them ended the run of all."""
    put(tmp_path, "1_19.py")
    (tmp_path / "1_23.py").symlink_to("a" * 300)
    here, folder = os.getcwd(), str(tmp_path)
    os.chdir(tmp_path)
    while (left := 4090 - len(folder) - 1) > 0:  # the folder can be listed
        name = "d" * (left if left <= 200 else 100)
        os.mkdir(name)
        os.chdir(name)
        folder += "/" + name
    Path("1_24.py").touch()
    os.chdir(here)
    found = discover(tmp_path)
    assert len(found.solutions) == 1 and len(found.unmapped) == 2
    reasons = {path.name: reason for path, reason in found.unmapped}
    assert "is a link" in reasons["1_23.py"] and "its path has more than 500 characters" in reasons["1_24.py"]


def test_what_maps_to_no_problem_is_listed_with_the_reason(tmp_path):
    put(tmp_path, "1_19.py")
    put(tmp_path, "helper.py")
    put(tmp_path, "odd.py", "# kb: problem=nineteen")
    found = discover(tmp_path)
    assert len(found.solutions) == 1
    reasons = {path.name: reason for path, reason in found.unmapped}
    assert "maps to no problem" in reasons["helper.py"] and "1/19" in reasons["helper.py"]
    assert "'nineteen' is not a problem id" in reasons["odd.py"]


def test_a_link_out_of_the_directory_is_no_solution(tmp_path):
    secret = put(tmp_path, "secret.py", "# kb: problem=1/19")
    put(tmp_path, "solutions/1_20.py")
    (tmp_path / "solutions/1_19.py").symlink_to(secret)
    found = discover(tmp_path / "solutions")
    assert [solution.name for solution in found.solutions] == ["1_20.py"]
    ((path, reason),) = found.unmapped
    assert path.name == "1_19.py" and "outside of the directory" in reason


def test_a_folder_that_cannot_be_read_is_listed(tmp_path, monkeypatch):
    put(tmp_path, "1_20.py")
    put(tmp_path, "level1/19.py")
    scandir = os.scandir

    def refused(folder):
        if Path(folder).name == "level1":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", refused)
    assert discover(tmp_path).unmapped == ((tmp_path / "level1", "cannot be read: Permission denied"),)


def test_a_hard_link_to_a_solution_is_nobody_elses_file(tmp_path):
    """The sandbox knows a file by what it is, and not by a name."""
    put(tmp_path, "1_19.py", "open('table.txt'), open('data.txt')")
    os.link(put(tmp_path, "1_20.py"), tmp_path / "table.txt")
    os.link(put(tmp_path, "data.txt"), tmp_path / "same.txt")
    solution, _ = discover(tmp_path).solutions
    assert [path.name for path in own_files(solution)] == ["1_19.py", "data.txt"]


def test_a_link_to_a_folder_is_not_followed_and_listed(tmp_path):
    put(tmp_path, "solutions/1_20.py")
    put(tmp_path, "elsewhere/1_19.py")
    (tmp_path / "solutions/level1").symlink_to(tmp_path / "elsewhere")
    found = discover(tmp_path / "solutions")
    ((link, reason),) = found.unmapped
    assert link.name == "level1" and "link to a folder" in reason and len(found.solutions) == 1


def test_a_link_to_another_file_of_the_directory_is_no_solution(tmp_path):
    """The files beside it would run in a process that may read that file, or be compiled under its key."""
    target = put(tmp_path, "solutions/relu_impl.py", "relu")
    link = tmp_path / "solutions/a/b/c/level1/19.py"
    link.parent.mkdir(parents=True)
    link.symlink_to(target)
    reasons = {path.name: reason for path, reason in discover(tmp_path / "solutions").unmapped}
    assert "is a link" in reasons["19.py"] and "put the file itself there" in reasons["19.py"]


def test_a_hard_link_takes_in_no_files_of_its_folder(tmp_path):
    """Nobody can say whose it is. Without such files it is as good as a copy."""
    for name, text in {"honest/1_19.py": "import helper", "honest/1_20.py": ""}.items():
        link = tmp_path / name.replace("honest", "other").replace(".py", "_s7.py")
        link.parent.mkdir(exist_ok=True)
        os.link(put(tmp_path, name, text), link)
    for folder in ("honest", "other"):
        put(tmp_path, f"{folder}/helper.py", "")
    found = discover(tmp_path)
    reasons = {path.relative_to(tmp_path).as_posix(): reason for path, reason in found.unmapped}
    assert all("put a copy of it there" in reasons[name] for name in ("honest/1_19.py", "other/1_19_s7.py"))
    assert [solution.name for solution in found.solutions] == ["honest/1_20.py", "other/1_20_s7.py"]


@pytest.mark.parametrize("shared", ["1_19.py", "table.txt"])
def test_a_file_with_a_name_outside_of_the_directory_is_nobodys(tmp_path, shared):
    """An archive that is unpacked beside it can give any file of its reader's a second name among solutions."""
    mine = put(tmp_path, "mine", "open('table.txt')")
    for name in ("1_19.py", "table.txt"):
        put(tmp_path, f"solutions/{name}", "open('table.txt')")
    (tmp_path / "solutions" / shared).unlink()
    os.link(mine, tmp_path / "solutions" / shared)
    put(tmp_path, "solutions/1_20.py", "")
    found = discover(tmp_path / "solutions")
    assert [solution.name for solution in found.solutions] == ["1_20.py"]
    assert "has a name outside of the directory" in dict(found.unmapped)[tmp_path / "solutions/1_19.py"]


def test_what_drives_a_terminal_is_no_part_of_a_name(tmp_path):
    put(tmp_path, "red\033[31m\nfile.py", "# kb: problem=1/19")
    (solution,) = discover(tmp_path).solutions
    assert solution.name == r"red\x1b[31m\nfile.py"


def test_no_two_files_are_shown_by_one_name(tmp_path):
    """Records and the gate know a solution by its name: one would stand for the other."""
    names = ["a\nb.py", r"a\nb.py", r"a\\nb.py", r"c\xff.py", "c\ufffd.py"]
    names += [os.fsdecode(b"c\xff.py"), os.fsdecode(b"c\xfe.py")]
    for sample, name in enumerate(names):
        put(tmp_path, name, f"# kb: problem=1/19 sample={sample}")
    shown = {solution.name for solution in discover(tmp_path).solutions}
    assert len(shown) == len(names) and all(name.isprintable() for name in shown)


def test_a_byte_that_is_no_text_is_shown_as_no_character_is():
    """A wrong `relu<byte 85>.py` and a right `relu<U+0085>.py` were one solution to the gate, which held."""
    names = [os.fsdecode(bytes([byte])) for byte in range(128, 256)] + [chr(code) for code in range(1, 0x3000)]
    names += [os.fsdecode(chr(code).encode("utf-8", "surrogatepass")) for code in range(0xD800, 0xE000)]
    shown = {readable(name) for name in names}
    assert len(shown) == len(names) and all(name.isprintable() for name in shown)


def test_a_letter_that_is_written_in_two_ways_is_shown_in_two():
    """A right `relu_é.py` and a wrong one, whose é was an e and a mark, were the same characters on the screen."""
    names = ["relu_\xe9.py", "relu_e\u0301.py", r"relu_e\u0301.py"]
    names += ["K.py", "\u212a.py", "\xc5.py", "\u212b.py", "A\u030a.py"]
    shown = [readable(name) for name in names]
    assert len({unicodedata.normalize("NFC", name) for name in shown}) == len(names) and shown[0] == names[0]


def test_names_that_differ_in_blanks_are_shown_so_where_blanks_at_the_ends_and_all_but_one_are_not_shown():
    """A wrong ` 1_19.py` and a right `1_19.py` were one line each of a table, of one name."""
    names = ["a b", " a b", "  a b", "a b ", "a  b", "a   b", r"a \x20b", r"\x20a b"]
    shown = {" ".join(readable(name).split()) for name in names}
    assert len(shown) == len(names) and readable("a b/c d") == "a b/c d"


def test_a_file_is_found_by_the_name_that_is_shown():
    names = [os.fsdecode(bytes([byte])) for byte in range(128, 256)]
    names += [chr(code) for code in (*range(1, 0x3000), 0x1F600, 0xE0001)]
    names += [r"a\x20b", r"a\\n", "a\nb", "a  b ", r"\u00e9"]
    assert [name_shown(readable(name)) for name in names] == names


@pytest.mark.parametrize("source", ["x = " + "-" * 200_000 + "1", "x = " + "-" * 3_000 + "1", "x = '\0'" + "\0"])
def test_what_cannot_be_parsed_is_a_solution_all_the_same(tmp_path, source):
    solution = read_solution(put(tmp_path, "1_19.py", source))
    assert solution.language == "pytorch"
    findings(solution)


def test_hidden_files_caches_and_other_endings_are_no_candidates(tmp_path):
    for name in (".hidden/1_1.py", "__pycache__/1_1.py", "pkg/__init__.py", "README.md", "1_2.so"):
        put(tmp_path, name)
    put(tmp_path, "1_19.py")
    found = discover(tmp_path)
    assert [s.name for s in found.solutions] == ["1_19.py"] and not found.unmapped


def test_prebuilt_libraries_only_where_asked_for(tmp_path):
    put(tmp_path, "1_2.so")
    with pytest.raises(SolutionError, match="no solutions in"):
        discover(tmp_path)
    assert discover(tmp_path, prebuilt=True).solutions[0].kind == "so"


CLAIM = "# kb: problem=1/19 sample=0"


@pytest.mark.parametrize(
    "files, kept, left_out",
    [
        ({"1_19.py": "", "1_21_hostile.py": CLAIM}, "1_19.py", "1_21_hostile.py"),
        ({"1_19.py": CLAIM, "0_early.py": CLAIM}, "1_19.py", "0_early.py"),
        ({"level1/19.py": "", "attempt.py": CLAIM, "other.py": CLAIM}, "level1/19.py", "attempt.py other.py"),
        ({"relu_kernel.py": "", "1_20.py": CLAIM}, "relu_kernel.py", "1_20.py"),
        ({"a/1_19.py": "", "b/1_19.cu": ""}, "", "a/1_19.py b/1_19.cu"),
        ({"a.py": CLAIM, "b.py": CLAIM}, "", "a.py b.py"),
        ({"a/1_19.py": "", "b/1_19.py": "", "claims.py": CLAIM}, "", "a/1_19.py b/1_19.py claims.py"),
        ({"1_19.py": "# kb: sample=1", "1_19_s1.py": ""}, "1_19_s1.py", "1_19.py"),
    ],
)
def test_a_name_wins_over_a_comment_and_of_equals_none_is_evaluated(tmp_path, files, kept, left_out):
    for name, text in files.items():
        put(tmp_path, name, text)
    put(tmp_path, "1_23.py")
    found = discover(tmp_path, names={"relu_kernel": ProblemId(1, 19)})
    assert [s.name for s in found.solutions] == [*kept.split(), "1_23.py"]
    assert sorted(path.relative_to(tmp_path).as_posix() for path, _ in found.unmapped) == left_out.split()
    assert found.clashes == found.unmapped


def test_what_is_left_out_for_its_claim_says_whose_place_it_is_and_the_way_out(tmp_path):
    put(tmp_path, "1_19.py", "import evil")  # a file that another takes in is told all the same
    put(tmp_path, "evil.py", CLAIM)
    put(tmp_path, "a/1_20.py")
    put(tmp_path, "b/1_20.cu")
    reasons = {path.name: reason for path, reason in discover(tmp_path).unmapped}
    assert reasons["evil.py"] == "claims 1/19 sample 0, which is that of 1_19.py"
    assert reasons["1_20.py"].startswith("claims 1/20 sample 0, and so does b/1_20.cu: give each its own sample number")
    assert "and so does a/1_20.py" in reasons["1_20.cu"]


def test_missing_empty_and_wrong_directories(tmp_path):
    with pytest.raises(SolutionError, match="no such directory"):
        discover(tmp_path / "nowhere")
    with pytest.raises(SolutionError, match="no solutions in"):
        discover(tmp_path)


def test_one_file_is_a_discovery_of_its_own_and_its_caller_may_say_what_it_solves(tmp_path):
    file = put(tmp_path, "relu.py")
    put(tmp_path, "1_20.py")
    found = discover(file, problem=ProblemId(1, 19))
    assert [(str(s.problem), s.name) for s in found.solutions] == [("1/19", "relu.py")] and found.root == tmp_path
    with pytest.raises(SolutionError, match="relu.py maps to no problem.*--problem 1/19"):
        discover(file)
    with pytest.raises(SolutionError, match="for one file only"):
        discover(tmp_path, problem=ProblemId(1, 19))
    with pytest.raises(SolutionError, match="expected a file ending in .py, .cu, .cpp"):
        discover(put(tmp_path, "notes.txt"))


def test_a_file_that_a_solution_imports_includes_or_names_is_not_a_file_without_a_problem(tmp_path):
    put(tmp_path, "level1/19.py", "import fast\nfrom parts import tile\nload('x', ['kernel.cu'])")
    for name in ("fast.py", "parts/__init__.py", "parts/tile.py", "kernel.cu", "stray.py"):
        put(tmp_path, f"level1/{name}")
    assert [path.name for path, _ in discover(tmp_path).unmapped] == ["stray.py"]


@pytest.mark.parametrize("comment", ["problem=x", "problem=1/20 sample=-1", "problem=1/20 device=tpu"])
def test_a_file_whose_claim_is_wrong_is_listed_whoever_names_it(tmp_path, comment):
    put(tmp_path, "1_19.py", "x = '1_20.py', 'other.py'")
    for name in ("1_20.py", "other.py"):
        put(tmp_path, name, f"# kb: {comment}")
    assert [path.name for path, _ in discover(tmp_path).unmapped] == ["1_20.py", "other.py"]


def test_content_decides_the_hash(tmp_path):
    first = read_solution(put(tmp_path, "1_19.py", "a = 1"))
    second = read_solution(put(tmp_path, "1_19.py", "a = 2"))
    assert first.sha256 != second.sha256


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("1_19.cu", '#include "parts.cuh"\nvoid kb_launch() {}'),
        ("1_19.py", "code = open(pathlib.Path(__file__).with_name('parts.cuh')).read()"),
        ("1_19.py", 'load_inline("x", cuda_sources="""\n#include "parts.cuh"\n""")'),
        ("1_19.py", "load('x', sources=['more/main.cu'])"),
        ("1_19.py", "import neighbour"),
        ("1_19.py", "open('last.cuh')"),
        ("1_19.py", "exec(pathlib.Path('more', 'helper.py').read_text())"),
        ("1_19.py", "open('table.txt')"),
        ("1_19.so", ""),
    ],
    ids=[
        "an include", "a file beside it", "an include in a string", "a source that includes it", "a module's import",
        "a header", "a module in a folder that it names", "data", "a library beside one",
    ],
)
def test_what_a_solution_takes_in_is_part_of_what_it_is(tmp_path, name, source):
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "main.cu").write_text('#include "../parts.cuh"\n')
    (tmp_path / "parts.cuh").write_text('#include "last.cuh"\n')
    (tmp_path / "neighbour.py").write_text("name = 'parts.cuh'")
    (tmp_path / name).write_text(source)
    found = set()
    for content in ("int a;", "int b;"):
        for changed in ("last.cuh", "table.txt", "more/helper.py", "libmore.so"):
            (tmp_path / changed).write_text(content)
        found.add(read_solution(tmp_path / name).helpers)
    assert len(found) == 2 and "" not in found


@pytest.mark.parametrize(
    "source", ["x = 'README.md'", "x = 'gone.cu'", "x = 'a\\0b.cu'", "x = (", "x = '#include MACRO'", "x = '..'"]
)
def test_a_solution_that_names_no_file_takes_none_in(tmp_path, source):
    (tmp_path / "1_19.py").write_text(source)
    assert read_solution(tmp_path / "1_19.py").helpers == ""


def test_a_run_in_a_directory_of_solutions_holds_no_solutions(tmp_path):
    put(tmp_path, "1_19.py")
    for name in ("run/config.json", "run/results.jsonl", "run/references/1_19.py", "run/sources/1_20.py"):
        put(tmp_path, name)
    put(tmp_path, "other/results.jsonl")
    put(tmp_path, "other/1_21.py")
    found = discover(tmp_path)
    assert sorted(s.name for s in found.solutions) == ["1_19.py", "other/1_21.py"]
    ((folder, reason),) = found.unmapped  # two files may not make others vanish unseen
    assert folder == tmp_path / "run" and reason.startswith("a run, by its files config.json and results.jsonl")


def test_a_source_that_names_more_files_than_a_solution_has_is_refused(tmp_path):
    """The names of 741 made a message that the judge does not take: it ended, as if the machine were at fault."""
    names = [f"{number}.txt" for number in range(501)]
    for name in names:
        put(tmp_path, name)
    put(tmp_path, "1_19.py", f"names = {names}")
    (solution,) = discover(tmp_path).solutions
    assert solution.refused == "it names 501 files, and the limit is 500" and not solution.taken_in


def test_a_source_that_names_more_bytes_than_a_solution_has_is_refused(tmp_path):
    """To take digests of six holes of 2 GiB each took 45 s, in which nobody else was evaluated."""
    for name in ("one.bin", "two.bin"):
        with put(tmp_path, name).open("wb") as file:
            file.truncate(5 << 28)
    put(tmp_path, "1_19.py", "names = ['one.bin', 'two.bin']")
    put(tmp_path, "1_20.py", "names = ['one.bin']")
    refused, taken = discover(tmp_path).solutions
    told = "the files that it names have 2,684,354,560 bytes together, and the limit is 2,147,483,648"
    assert refused.refused == told and not refused.taken_in and taken.taken_in


def test_a_source_that_names_files_in_more_folders_than_a_copy_has_is_refused(tmp_path):
    """499 of them, each 89 folders deep, made 45,000 folders anew for each solution, until no disk had the room."""
    names = [f"{number}/{'d/' * 60}table.txt" for number in range(2)]
    for name in names:
        put(tmp_path, name)
    put(tmp_path, "1_19.py", f"names = {names}")
    put(tmp_path, "1_20.py", f"names = {names[:1]}")
    refused, taken = discover(tmp_path).solutions
    assert refused.refused == "it names files in 123 folders, with those around them, and the limit is 100"
    assert not refused.taken_in and not taken.refused and taken.taken_in


def test_a_source_that_names_a_file_of_a_longer_path_than_a_solution_has_is_refused(tmp_path):
    """It was put aside as if the machine were at fault where the path of its copy was longer still."""
    name = "/".join(["d" * 200] * 3) + "/table.txt"
    put(tmp_path, name)
    put(tmp_path, "1_19.py", f"name = '{name}'")
    (solution,) = discover(tmp_path).solutions
    assert solution.refused == "it names a file whose path has more than 500 characters" and not solution.taken_in


def test_of_a_link_to_one_file_the_files_beside_that_file_are_its_own(tmp_path):
    """Its header was not there for the build, and then it was said to have changed."""
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels/1_19.cpp").write_text('#include "mine.h"')
    (tmp_path / "kernels/mine.h").write_text("")
    (tmp_path / "1_19.cpp").symlink_to("kernels/1_19.cpp")
    solution = read_solution(tmp_path / "1_19.cpp")
    assert solution.path == tmp_path / "kernels/1_19.cpp" and solution.root == tmp_path / "kernels"
    assert [file.name for file, _ in solution.taken_in] == ["mine.h"]
