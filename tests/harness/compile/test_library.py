"""Libraries of .cpp and .cu solutions: built once for what they consist of, and again when any of it changes."""

import ctypes
import errno
import json
import os
import subprocess

import pytest
import torch

from harness.compile import BuildContext, build, dependencies, library, toolchain
from harness.compile.artefact import ToolchainError
from harness.compile.toolchain import nvcc
from harness.faults import MachineFault
from harness.problem.module import ProblemId
from harness.result import CandidateFailure, Status
from harness.solution.discover import read_solution

SOURCE = 'extern "C" int answer() {{ return {}; }}\n'


@pytest.fixture
def built(server, tmp_path, monkeypatch):
    """Build the source given for ``name`` in a cache of this test; the artefact."""
    monkeypatch.setenv("KERNELBENCH_CACHE", str(tmp_path / "cache"))
    (tmp_path / "solutions").mkdir()

    def built(source, name="a.cpp", arch=None):
        path = tmp_path / "solutions" / name
        path.write_bytes(source if isinstance(source, bytes) else source.encode())
        solution = read_solution(path, problem=ProblemId(1, 19))
        return build(solution, BuildContext(server, arch, torch.__version__, 60, 2 << 30))

    return built


def answer(artefact):
    return ctypes.CDLL(str(artefact.library)).answer()


def test_sources_that_differ_in_one_byte_that_is_no_text_share_no_library(built):
    one, other = (b"// \xff\n", b"// \xfe\n")
    code = b'extern "C" int answer() { return (unsigned char)"%s"[0]; }\n'
    assert answer(built(one + code % b"\xff")) == 255
    second = built(other + code % b"\xfe")
    assert not second.cached and answer(second) == 254


@pytest.mark.parametrize(
    "include",
    ['#include "n.h"', '#import "n.h"', '%:include "n.h"', '#inc\\\nlude "n.h"', '#define H "n.h"\n#include H'],
)
def test_a_changed_header_is_noticed_however_it_is_included(built, tmp_path, include):
    for number in (1, 2):
        (tmp_path / "solutions" / "n.h").write_text(f"#define N {number}\n")
        artefact = built(include + "\n" + SOURCE.format("N"))
        assert answer(artefact) == number and not artefact.cached
    assert built(include + "\n" + SOURCE.format("N")).cached


@pytest.mark.skipif(nvcc() is None, reason="needs nvcc")
@pytest.mark.parametrize("name", ["$(touch ran).cu", "`touch ran`.cu", 'a"b.cu', "a\\b.cu"])
def test_a_path_that_a_shell_of_nvccs_would_act_on_is_refused(built, name):
    """The shell may write another source, which is compiled instead and kept for all who have the same one."""
    with pytest.raises(CandidateFailure, match="rename the file") as failure:
        built(SOURCE.format(1), name)
    assert failure.value.status is Status.BUILD_ERROR


@pytest.mark.slow
@pytest.mark.parametrize(("name", "compiler"), [("a.cpp", toolchain.host_compiler()), ("a.cu", nvcc())])
def test_a_changed_header_of_the_system_is_noticed(built, tmp_path, monkeypatch, server, name, compiler):
    if compiler is None:
        pytest.skip(f"nothing here compiles {name}")
    built(SOURCE.format(1), name)
    assert built(SOURCE.format(1), name).cached
    (manifest,) = (tmp_path / "cache").glob("entries/*/*/manifest.json")
    read = json.loads(manifest.read_text())
    assert all(path.startswith("/") for path in read["dependencies"]) and len(read["dependencies"]) > 0
    header = tmp_path / "toolkit.h"
    header.write_text("as it is now")
    read["dependencies"][str(header)] = "as it was then"
    manifest.write_text(json.dumps(read))
    assert not built(SOURCE.format(1), name).cached


def test_a_library_leaves_others_room_in_the_cache(built, monkeypatch):
    monkeypatch.setattr("harness.compile.cache.Cache.share_bytes", lambda cache: 1000)
    with pytest.raises(CandidateFailure, match="bytes; the limit is 1,000"):
        built(SOURCE.format(1))


@pytest.mark.slow
def test_more_includes_than_anybody_looks_for_are_the_candidates_fault(built):
    with pytest.raises(CandidateFailure, match="name more than 100,000 places"):
        built("".join(f'#include "{number}.h"\n' for number in range(100_001)))


def test_a_file_that_only_the_compiler_finds_is_refused(built, tmp_path):
    (tmp_path / "solutions" / "n.h").write_text("#define N 1\n")
    hidden = "#define TEXT(x) #x\n#define PASTE(x) TEXT(x.h)\n#include PASTE(n)\n"
    with pytest.raises(CandidateFailure) as caught:
        built(hidden + SOURCE.format("N"))
    assert caught.value.status is Status.BUILD_ERROR and "n.h" in caught.value.message


def test_a_compiled_header_is_not_taken_in_place_of_its_text(built, tmp_path, monkeypatch):
    (header := tmp_path / "solutions" / "n.h").write_text("#define N 7\n")
    source = '#include "n.h"\n//# "n.h.gch"\n' + SOURCE.format("N")
    commands, run = [], library._run
    monkeypatch.setattr(library, "_run", lambda worker, source, compiler, flags, s: (
        commands.append([compiler.path, *flags]), run(worker, source, compiler, flags, s)))  # fmt: skip
    assert answer(built(source)) == 7
    header.write_text("#define N 8\n")
    link = {"-shared", "-o"}
    compiled = [word for word in commands[0] if word not in link and not word.startswith(("-l", "-Wl"))]
    subprocess.run([*compiled, "-x", "c++-header", str(header), "-o", f"{header}.gch"], check=True)
    header.write_text("#define N 7\n")
    assert answer(built(source)) == 7


def test_a_header_that_is_a_link_is_refused(built, tmp_path):
    """Two solutions whose links lead to one another's headers had one key, and the library of the first."""
    (tmp_path / "solutions" / "real.h").write_text("#define N 1\n")
    (tmp_path / "solutions" / "n.h").symlink_to("real.h")
    with pytest.raises(CandidateFailure, match="n.h is a link: put the file itself there"):
        built('#include "n.h"\n' + SOURCE.format("N"))


def test_without_confinement_the_compilers_own_list_tells_of_it(tmp_path):
    (tmp_path / "n.h").write_text("")
    (tmp_path / "list.d").write_text(f"a.so: {tmp_path}/own.cpp {tmp_path}/n.h \\\n /usr/include/stdio.h")
    read = dependencies.listed_in(tmp_path / "list.d")
    own = [tmp_path / "own.cpp"]
    with pytest.raises(dependencies.UnforeseenFile, match='write #include "n.h"'):
        dependencies.of_the_system(read, own, tmp_path, tmp_path / "scratch")
    assert dependencies.of_the_system(read, [*own, tmp_path / "n.h"], tmp_path, tmp_path / "scratch").keys() == {
        "/usr/include/stdio.h"
    }


@pytest.mark.parametrize(
    "name", ["a b.cpp", "a$b.cpp", "a#b.cpp", "a:b.cpp", "a\u2003b.cpp", "a%b*.cpp", "\u00fc'\".cpp"]
)
def test_a_path_with_odd_characters_builds(built, name):
    assert answer(built(SOURCE.format(7), name)) == 7


@pytest.mark.parametrize("name", ["a\\b.cpp", "a\nb.cpp", os.fsdecode(b"a\xff.cpp")], ids=ascii)
def test_a_path_that_no_list_of_a_compiler_can_hold_is_told_so(built, name):
    with pytest.raises(CandidateFailure, match="rename the file, or the folder that has one") as caught:
        built(SOURCE.format(7), name)
    assert caught.value.status is Status.BUILD_ERROR


@pytest.mark.parametrize("error", [OSError(errno.EIO, "Input/output error"), RecursionError("too deep")], ids=repr)
def test_who_has_the_machine_fail_with_its_build_and_nobody_elses_has_failed(built, monkeypatch, error):
    """Its author could have it listed as not evaluated, where it counts nowhere."""
    read = library._read_files
    tried = []

    def fails(worker, solution, *more):
        tried.append(solution.name)
        if solution.name == "a.cpp":
            raise error
        return read(worker, solution, *more)

    monkeypatch.setattr(library, "_read_files", fails)
    with pytest.raises(CandidateFailure, match="failed three times with the build of a.cpp, not") as caught:
        built(SOURCE.format(1))
    assert caught.value.status is Status.BUILD_ERROR
    assert tried.count("a.cpp") >= 2 and tried[-2:] == ["another.cpp", "a.cpp"]


def test_a_machine_that_fails_with_other_builds_too_is_to_blame(built, monkeypatch):
    def fails(*_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(library, "_read_files", fails)
    with pytest.raises(MachineFault, match="cannot build a.cpp: .*Input/output error"):
        built(SOURCE.format(1))


def test_a_folder_name_with_wide_spaces_puts_no_words_into_a_compilers_list(tmp_path):
    """Between them, that of a file whose reading fails made a wrong solution one that was not evaluated."""
    name = f"{tmp_path}/u\u2003/sys/devices/system/cpu/x\u00a0/a\x1fown.cpp"
    (tmp_path / "list.d").write_text(f"a.so: {name} /usr/include/a\\ b.h")
    assert dependencies.listed_in(tmp_path / "list.d") == [name, "/usr/include/a b.h"]


def test_a_file_of_the_system_that_cannot_be_read_is_no_fault_of_the_machine(tmp_path, monkeypatch):
    (tmp_path / "unreadable").write_text("")

    def fails(path):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(dependencies, "digest_of", fails)
    with pytest.raises(dependencies.UnforeseenFile, match="unreadable cannot be read: Input/output error"):
        dependencies.of_the_system([str(tmp_path / "unreadable")], [], tmp_path, tmp_path / "scratch", [tmp_path])


def test_what_linux_shows_of_itself_is_no_source(tmp_path):
    with pytest.raises(dependencies.UnforeseenFile, match="online is included in a way that only"):
        dependencies.of_the_system(["/sys/devices/system/cpu/online"], [], tmp_path, tmp_path / "scratch")


def test_each_file_that_a_compiler_lists_is_read_once_and_all_of_them_for_seconds(tmp_path, monkeypatch):
    """A list with 20,000 spellings of PyTorch's library, written in a build, would have held `kb` for hours."""
    read = [f"/usr/include/{'./' * number}stdio.h" for number in range(9)]
    digests = []
    monkeypatch.setattr(dependencies, "digest_of", lambda path: digests.append(path) or "digest")
    assert dependencies.of_the_system(read, [], tmp_path, tmp_path) == {"/usr/include/stdio.h": "digest"}
    assert len(digests) == 1
    monkeypatch.setattr(dependencies, "_MOST_FILES", 8)
    with pytest.raises(dependencies.UnforeseenFile, match="may read 8 files, and this one has read 9"):
        dependencies.of_the_system(read, [], tmp_path, tmp_path)
    monkeypatch.setattr("harness.solution.includes._LOOKUPS_S", -1.0)
    with pytest.raises(dependencies.UnforeseenFile, match="takes more than -1 s"):
        dependencies.of_the_system(read[:1], [], tmp_path, tmp_path)


def test_solutions_and_temporary_files_may_lie_behind_links(built, tmp_path, monkeypatch):
    """A compiler lists the names that it was given."""
    (tmp_path / "solutions").rename(tmp_path / "elsewhere")
    (tmp_path / "solutions").symlink_to("elsewhere")
    (tmp_path / "solutions" / "n.h").write_text("#define N 1\n")
    (tmp_path / "temporary").mkdir()
    (tmp_path / "link").symlink_to("temporary")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "link"))
    assert built('#include "n.h"\n' + SOURCE.format("N"))


def test_a_list_that_a_build_has_written_has_nothing_looked_at_elsewhere(tmp_path, monkeypatch):
    """/proc/PID/fd/3 in it told the name of a file that another process had open."""
    generated, seen = tmp_path / "generated", []
    generated.mkdir()
    (generated / "link").symlink_to("/proc/self/fd")
    before = os.readlink
    monkeypatch.setattr(os, "readlink", lambda path, **named: seen.append(str(path)) or before(path, **named))
    for name in ("/proc/self/fd/0", "/proc/self/cwd", "link/0", "/usr/include/../../proc/self/cwd", "/dev/null"):
        with pytest.raises(dependencies.UnforeseenFile, match="(0|cwd|null) is included in a way that only"):
            dependencies.of_the_system([name], [], tmp_path, generated)
    assert not [path for path in seen if path.startswith(("/proc/self/cwd", "/proc/self/fd/0"))]


@pytest.mark.parametrize("what", ["secret", "pipe"])
def test_an_error_that_names_another_file_opens_none(built, tmp_path, what):
    (tmp_path / "secret").write_text("hunter2\n")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(CandidateFailure) as caught:
        built(f'/*\nhunter2\n*/\n#line 1 "{tmp_path}/{what}"\n#error "x"\n')
    assert caught.value.message.splitlines()[1:] == [f'{what}:1: #error "x"']


@pytest.mark.parametrize("part", ["", ".", "here"])
def test_no_program_of_the_working_directory_is_taken_for_a_compiler(tmp_path, monkeypatch, part):
    """A colon at the end of PATH had a file `nvcc` run that an archive of others brought."""
    (tmp_path / "here").mkdir()
    for folder in (tmp_path, tmp_path / "here"):
        (folder / "nvcc").write_text("#!/bin/sh\n")
        (folder / "nvcc").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"/nowhere:{part}")
    assert toolchain.program("nvcc") is None
    monkeypatch.setenv("PATH", str(tmp_path))
    assert toolchain.program("nvcc") == str(tmp_path / "nvcc") == toolchain.program("./nvcc")


@pytest.fixture
def nvcc_that_says(tmp_path, monkeypatch):
    """A program in the place of nvcc that prints some text, and fails."""

    def nvcc_that_says(text):
        path = tmp_path / "cuda" / "bin" / "nvcc"
        path.parent.mkdir(parents=True)
        path.write_text(f"#!/bin/sh\ncat <<'END'\n{text}\nEND\nexit 1\n")
        path.chmod(0o755)
        monkeypatch.setenv("CUDA_HOME", str(tmp_path / "cuda"))  # whose files a build may read
        compiler = toolchain.Compiler(str(path), "12.0.1")
        monkeypatch.setattr(library, "nvcc", lambda: compiler)
        return compiler

    return nvcc_that_says


UNKNOWN = "nvcc fatal   : Unsupported gpu architecture 'compute_103a'"


def test_a_gpu_that_nvcc_does_not_know_is_no_fault_of_a_source(built, nvcc_that_says):
    """It was the build_error of every .cu."""
    compiler = nvcc_that_says(UNKNOWN)
    with pytest.raises(ToolchainError, match="nvcc 12.0.1 does not know GPUs of compute capability 10.3: install"):
        built(SOURCE.format(1), "a.cu", arch="10.3")
    assert "compute capability 10.3" in toolchain.lacking_target(compiler, "10.3")
    assert not toolchain.lacking_target(compiler, "9.0")


@pytest.mark.parametrize("text", [f"a.cu(1): error: x\n{UNKNOWN}", f"{UNKNOWN}(1): error: x", "nvcc fatal   : other"])
def test_what_a_source_has_nvcc_say_is_its_own_fault(built, nvcc_that_says, text):
    nvcc_that_says(text)
    with pytest.raises(CandidateFailure) as caught:
        built(SOURCE.format(1), "a.cu", arch="10.3")
    assert caught.value.status is Status.BUILD_ERROR


@pytest.mark.skipif(nvcc() is None, reason="needs nvcc")
@pytest.mark.parametrize(("arch", "known"), [("9.0", True), ("999.0", False)])
def test_nvcc_is_asked_for_a_gpu_without_a_source(arch, known):
    assert bool(toolchain.lacking_target(nvcc(), arch)) is not known


def test_a_version_in_another_encoding_is_read_as_far_as_it_goes(tmp_path):
    (tmp_path / "c++").write_bytes(b"#!/bin/sh\necho 'f\xfcr 1.2.3'\n")
    (tmp_path / "c++").chmod(0o755)
    assert toolchain._first([str(tmp_path / "c++")], r"(\d+\.\d+\.\d+)").version == "1.2.3"


def test_a_folder_of_the_machine_that_is_gone_is_no_fault_of_a_source(built, monkeypatch):
    """It was a build_error, as of a file that the source names."""

    def gone(*_):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), "/tmp/gone")

    def no_room():
        raise MachineFault("no room")

    monkeypatch.setattr("harness.compile.KINDS", {"cpp": gone})
    monkeypatch.setattr("harness.compile.check_disk", no_room)
    with pytest.raises(MachineFault):
        built(SOURCE.format(1))
