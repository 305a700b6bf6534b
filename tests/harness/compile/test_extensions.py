"""What a candidate gets from load and load_inline: what PyTorch's own would give it, from our build."""

import contextlib
import dataclasses
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path, PurePath

import pytest
import torch
from linear_time import MEGABYTE, in_linear_time

from harness.compile import BuildContext, build
from harness.compile.cache import Cache
from harness.compile.extension import headers
from harness.compile.extension.build import ExtensionBuilder
from harness.compile.extension.request import Refused, Request
from harness.compile.extension.torch_extension import _TORCH_INCLUDE
from harness.problem.module import ProblemId
from harness.result import CandidateFailure, Status
from harness.solution.discover import read_solution

ROOT = str(Path(__file__).parents[3])
FIXTURES = {path.stem: path for path in (Path(__file__).parent / "extensions").glob("*.py")}
CUDA = sorted(name for name in FIXTURES if name.startswith("cuda_"))
PLAIN = 'extern "C" int answer() { return 42; }'
# loads without pybind11 and without a header, so that a build takes a moment
QUICK = """
import ctypes
from torch.utils.cpp_extension import load_inline
class ModelNew: pass
path = load_inline({name!r}, {source!r}, no_implicit_headers=True, is_python_module=False)
"""


@pytest.fixture
def context(server, monkeypatch, tmp_path):
    """For builds with an empty cache."""
    monkeypatch.setenv("KERNELBENCH_CACHE", str(tmp_path / "cache"))
    return BuildContext(server, None, torch.__version__, timeout_s=300, memory_bytes=4 << 30, jobs=2)


@pytest.fixture
def solution(tmp_path):
    """A solution of problem 1/19 with the given source."""

    def write(source, name="candidate.py"):
        path = tmp_path / name
        path.write_text(source)
        return read_solution(path, problem=ProblemId(1, 19))

    return write


@pytest.fixture
def builder(context, solution):
    return ExtensionBuilder(solution("from torch.utils import cpp_extension"), context)


def quick(name="kb_quick", source=PLAIN, more=""):
    return QUICK.format(name=name, source=source) + more


def inline(**arguments):
    return {"function": "load_inline", "arguments": {"name": "kb_x", "cpp_sources": PLAIN, **arguments}}


@pytest.mark.slow
def test_files_flags_include_paths_and_keywords_arrive(judged, problem):
    source = FIXTURES["load_files"].read_text()
    result = judged(problem("1/19"), source)
    assert result.status is Status.OK, result.message
    again = judged(problem("1/19"), source)
    assert again.build["cached"], "written anew into another folder, the same files are the same extension"


@pytest.mark.slow
def test_what_needs_the_real_headers_builds_all_the_same(judged, problem):
    result = judged(problem("1/19"), FIXTURES["full_headers"].read_text())
    assert result.status is Status.OK, result.message


@pytest.mark.gpu
@pytest.mark.parametrize("name", CUDA)
def test_cuda_extension(name, judged, problem):
    path = FIXTURES[name]
    source, of = path.read_text(), problem(str(read_solution(path).problem))
    result = judged(of, source, device="cuda", workload="small", track="open")  # not all bring a kernel
    assert result.status is Status.OK, result.message


@pytest.mark.gpu
@pytest.mark.parametrize("name", CUDA)
def test_cuda_extension_gives_the_same_as_the_stock_build(name, tmp_path):
    path = FIXTURES[name]
    outputs = {}
    for side in ("ours", "stock"):
        script = Path(__file__).parent / "extension_output.py"
        command = [sys.executable, str(script), side, str(path), str(tmp_path / side)]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": ROOT})
        assert done.returncode == 0, done.stdout + done.stderr
        outputs[side] = torch.load(tmp_path / side, weights_only=True)
    assert torch.equal(outputs["ours"], outputs["stock"])


@pytest.mark.slow
def test_what_was_built_is_not_built_again_by_anyone(context, solution):
    cold = build(solution(quick()), context)
    other = build(solution(quick() + "\n# another solution with the same extension", "other.py"), context)
    assert not cold.cached and other.cached


def test_source_flags_and_torch_version_decide_what_is_the_same(builder, tmp_path):
    def key(context=builder.context, **arguments):
        other, request = dataclasses.replace(builder, context=context), inline(**arguments)
        return other._key(other.checked(request, tmp_path), other._environment(request))

    newer = dataclasses.replace(builder.context, torch_version="9.9")
    (tmp_path / "own.h").write_text("int a;")
    included = {"cpp_sources": '#include "own.h"', "extra_include_paths": [str(tmp_path)]}
    keys = [key(), key(cpp_sources=PLAIN + " "), key(extra_cflags=["-O1"]), key(newer), key(**included)]
    (tmp_path / "own.h").write_text("int b;")
    assert len({*keys, key(**included)}) == 6
    assert key() == key(verbose=True)


def test_what_is_a_source_and_in_which_order_decides_what_is_the_same(builder, tmp_path):
    """A file was the same as a header of another and as a source beside it, so that one got the other's library."""
    first, second = tmp_path / "a.cpp", tmp_path / "b.cpp"
    first.write_text('#include "b.cpp"\n')
    second.write_text(PLAIN)

    def key(*sources):
        request = {"function": "load", "arguments": {"name": "kb_x", "sources": list(map(str, sources))}}
        return builder._key(builder.checked(request, tmp_path), {})

    assert len({key(first), key(first, second), key(second, first)}) == 3
    assert key(first) == key(first)


@pytest.mark.parametrize(
    ("wished", "compiled"),
    [(None, "9.0"), ("9.0a", "9.0a"), ("8.0;9.0a+PTX", "9.0a"), ("7.5 8.0", "9.0"), ("x", "9.0")],
)
def test_only_the_devices_architecture_is_compiled(builder, wished, compiled):
    builder.context = dataclasses.replace(builder.context, arch="9.0")
    environment = builder._environment({**inline(), "arch_list": wished})
    assert environment["TORCH_CUDA_ARCH_LIST"] == compiled


def test_a_megabyte_of_architectures_is_read_in_linear_time(builder):
    builder.context = dataclasses.replace(builder.context, arch="9.0")
    with in_linear_time():
        for wished in ("1" * MEGABYTE, "9.0a;" + "1." * MEGABYTE):
            environment = builder._environment({**inline(), "arch_list": wished})
    assert environment["TORCH_CUDA_ARCH_LIST"] == "9.0a"


@pytest.mark.parametrize(
    "request_",
    [{}, {"function": "system"}, inline(name="../../other"), inline(name=""), {"function": "load", "arguments": []},
     {"function": "load", "arguments": {"name": "kb_x", "sources": ["/nowhere/a.cpp"]}},
     {"function": "load", "arguments": {"name": "kb_x", "sources": 7}},
     {"function": "load", "arguments": {"name": "kb_x"}}, inline(extra_cflags=5), inline(nonsense=1),
     inline(extra_include_paths=["/a\0b"]), inline(extra_include_paths=["/\ud800"]),
     inline(extra_cflags=["-I/\ud800", "'"]),
     {"function": "load", "arguments": {"name": "kb_x", "sources": ["/\ud800"]}}],
)  # fmt: skip
def test_a_forged_request_is_refused(builder, request_, tmp_path):
    answer = builder(request_, tmp_path)
    assert "raised" in answer and "library" not in answer
    assert Cache().statistics().entries == 0


VICTIM = quick("kb_victim", '#include <climits>\nextern "C" int answer() { return CHAR_BIT; }')
# <climits> takes it in, and no line of the victim names it
EVIL = "#include_next <limits.h>\n#undef CHAR_BIT\n#define CHAR_BIT 666\n"
PLANTS = f"""
import os
folder = os.path.abspath("evil")
os.mkdir(folder)
open("evil/limits.h", "w").write({EVIL!r})
path ="""


def test_an_include_path_plants_nothing_in_the_entry_of_another_candidate(context, solution):
    attacker = VICTIM.replace("is_python_module", "extra_include_paths=[folder], is_python_module")
    with contextlib.suppress(CandidateFailure):
        build(solution(attacker.replace("path =", PLANTS), "attacker.py"), context)
    artefact = build(solution(VICTIM + "assert ctypes.CDLL(path).answer() == 8", "victim.py"), context)
    assert not artefact.cached and artefact.note == ""


@pytest.mark.parametrize(
    "arguments",
    [{"extra_include_paths": ["{elsewhere}"]}, {"extra_cflags": ["-O2 -I{elsewhere}"]},
     {"extra_cflags": ["-include", "{elsewhere}/a.h"]}, {"extra_cflags": ["-include{elsewhere}/a.h"]},
     {"extra_ldflags": ["{elsewhere}/a.so"]}, {"extra_cuda_cflags": ["-Xcompiler=-I{elsewhere}"]},
     {"extra_ldflags": ["-Wl,-rpath,{elsewhere}"]}, {"extra_include_paths": ["relative"]},
     {"extra_include_paths": ["/"]}, {"extra_include_paths": ["/proc/self/root/root"]}],
)  # fmt: skip
def test_a_request_that_names_a_path_of_somebody_else_is_refused(builder, tmp_path, arguments):
    elsewhere, scratch = tmp_path / "elsewhere", tmp_path / "scratch"
    elsewhere.mkdir()
    scratch.mkdir()
    (elsewhere / "a.h").write_text("")
    named = {name: [value.format(elsewhere=elsewhere) for value in values] for name, values in arguments.items()}
    assert "not the solution's own" in builder(inline(**named), scratch)["message"]


def test_the_libraries_of_one_candidate_leave_others_room_in_the_cache(builder, tmp_path, monkeypatch):
    """Each a sixth of what was free, until nothing was: its neighbours were not evaluated."""
    (scratch := tmp_path / "scratch").mkdir()
    monkeypatch.setattr(Cache, "share_bytes", lambda cache: 64 << 20)
    large = "char a[{}] = {{1}};"
    assert "library" in builder(inline(cpp_sources=large.format(40 << 20), no_implicit_headers=True), scratch)
    second = inline(cpp_sources=large.format(30 << 20), no_implicit_headers=True)
    assert "its extensions have more than 67,108,864 bytes together" in builder(second, scratch)["message"]


def test_a_library_that_is_asked_for_again_is_noted_once(builder, tmp_path):
    """The judge read it as often as it was asked for, up to a thousand times."""
    for _ in range(3):
        assert "library" in builder(inline(no_implicit_headers=True), tmp_path)
    assert (builder.compiled, builder.reused) == (1, 2)
    assert len(builder.libraries) == len(builder.keys) == 1


@pytest.mark.parametrize(
    "arguments, message",
    [({"extra_include_paths": ["/usr/include"] * 501}, "extra_include_paths of an extension has more than 500 items"),
     ({"extra_cflags": ["-D" + "A" * 70_000]}, "have more than 65,536 characters"),
     ({"sources": ["/a" * 3000]}, "path of a source has more than 4,096 characters"),
     ({"sources": ["/tmp/d\ncxx=touch x/a.cpp"]}, "characters that a shell acts on"),
     ({"sources": ["/tmp/$cxx/a.cpp"]}, "characters that a shell acts on"),
     *(({"sources": [f"/tmp/{name}"]}, "the name of a source has letters, digits")
       for name in ("-Wl,-plugin,x.cpp", "@x.cpp", "build.ninja x.cpp")),
     ({"extra_ldflags": ["-lm; truncate -s 2G x.so"]}, "characters that a shell acts on"),
     ({"extra_cflags": ["-fplu${x}gin=x"]}, "characters that a shell acts on"),
     ({"extra_cflags": ["-O2 -fplugin=x"]}, "-fplugin=x is not among the flags"),
     ({"extra_cuda_cflags": ["-ccbin x"]}, "-ccbin is not among the flags"),
     ({"name": None}, "the name of an extension must be an identifier, not None"),
     ({"build_directory": "/tmp"}, "build_directory is no argument"),
     ({"extra_sycl_cflags": ["-fplugin=x"]}, "extra_sycl_cflags is no argument")],
    ids=["items", "characters", "path", "a line of ninja's", "a variable of ninja's", "plugin of the linker",
         "response file", "another object", "commands", "variable", "plugin", "compiler", "name", "place",
         "another compiler"],
)  # fmt: skip
def test_a_request_of_too_many_too_long_or_unknown_flags_is_refused(builder, tmp_path, arguments, message):
    assert message in builder(inline(**arguments), tmp_path)["message"]


@pytest.mark.parametrize("character", ["a", "\U0001f600"])
def test_a_text_is_no_longer_than_a_source_may_be(builder, tmp_path, character):
    """To look for includes in one of 16 MB took 4 s and 363 MB, three times a request."""
    longest = character * (4 * MEGABYTE // len(character.encode()))
    assert builder.checked(inline(cuda_sources=longest), tmp_path)
    with pytest.raises(Refused, match="a text of an extension has more than 4 MiB"):
        builder.checked(inline(cuda_sources=[PLAIN, longest + "a"]), tmp_path)


def test_flags_and_include_paths_reach_the_compiler_as_they_were_checked(builder, tmp_path):
    """A shell put main.cpp and main.o for the pattern, so that the object was linked twice; a blank ended a path."""
    folder = tmp_path / "with blank"
    folder.mkdir()
    (folder / "a.h").write_text("#define ANSWER 42\n")
    source = '#include "a.h"\nextern "C" int answer() { return ANSWER; }'
    keywords = {"no_implicit_headers": True, "is_python_module": False}
    request = inline(cpp_sources=source, extra_include_paths=[str(folder)], extra_ldflags=["-I m*"], **keywords)
    answer = builder(request, tmp_path)
    assert "library" in answer, answer


def test_sources_that_come_and_go_are_the_candidates_fault(builder, tmp_path):
    """Its own folder is the candidate's: it may move a file away between two looks at it."""
    path = tmp_path / "a.cpp"
    path.write_text(PLAIN)
    request = {"function": "load", "arguments": {"name": "x", "sources": [str(path)]}}
    made = Request.checked(request, builder.solution, [builder.solution.path], tmp_path)
    path.unlink()
    for look in (made.files, made.key_parts):
        with pytest.raises(Refused, match="cannot read the sources of extension x"):
            look()


@pytest.mark.slow
@pytest.mark.parametrize("named", ["sources", "extra_include_paths", "extra_cflags"])
def test_links_to_links_without_end_are_the_candidates_fault(builder, tmp_path, named):
    """Python followed each of 3,000 in the last one's call, until it could not: kernelbench had failed."""
    for number in range(3_000):
        (tmp_path / f"{number}.cpp").symlink_to(tmp_path / f"{number + 1}.cpp")
    first = str(tmp_path / "0.cpp")
    arguments = {"name": "x", "sources": [], named: [f"-I{first}" if named == "extra_cflags" else first]}
    assert "not the solution's own file" in builder({"function": "load", "arguments": arguments}, tmp_path)["message"]


def test_include_paths_that_take_long_to_look_up_are_looked_up_once_and_for_seconds_at_most(
    builder, tmp_path, monkeypatch
):
    """They took hours where 480 sources had as many folders behind long links."""
    scratch, looked = tmp_path / "scratch", []
    (scratch / "folder").mkdir(parents=True)
    sources = [scratch / f"{number}.cpp" for number in range(3)]
    for source in sources:
        source.write_text('#include "a.h"\n')
    (scratch / "link").symlink_to("folder")
    reached = "harness.compile.extension.request.reached"
    before = importlib.import_module("harness.solution.includes").reached
    monkeypatch.setattr(reached, lambda path, folders: looked.append(str(path)) or before(path, folders))
    arguments = {"name": "x", "sources": list(map(str, sources)), "extra_include_paths": [f"{scratch}/link"] * 9}
    request = {"function": "load", "arguments": arguments}
    checked = Request.checked(request, builder.solution, [builder.solution.path], scratch)
    assert checked.key_parts() and sorted(looked) == sorted([f"{scratch}/link", *map(str, sources)])
    monkeypatch.setattr("harness.solution.includes._LOOKUPS_S", -1.0)
    with pytest.raises(Refused, match="takes more than -1 s"):
        Request.checked(request, builder.solution, [builder.solution.path], scratch)


def test_a_header_counts_where_the_first_of_the_folders_that_hold_it_shows_it(builder, tmp_path, monkeypatch):
    """Each of 58,000 headers was compared with 480 folders, for minutes."""
    scratch, compared = tmp_path / "scratch", []
    folders = [scratch / "a", scratch / "a" / "b", *(scratch / str(number) for number in range(90))]
    for folder in folders[1:]:
        folder.mkdir(parents=True)
    headers = {"a/b/1.h": "0 b/1.h", "a/2.h": "0 2.h", "9/3.h": "11 3.h", "4.h": "-1 4.h"}
    for header in headers:
        (scratch / header).write_text("")
    source = "".join(f'#include "{scratch / header}"\n' for header in headers)
    arguments = {"name": "x", "cpp_sources": [source], "extra_include_paths": list(map(str, folders))}
    request = Request.checked({"function": "load_inline", "arguments": arguments}, builder.solution, [], scratch)
    before = PurePath.is_relative_to
    monkeypatch.setattr(PurePath, "is_relative_to", lambda *paths: compared.append(paths[0]) or before(*paths))
    parts = [part.split("\0") for part in request.key_parts()]
    assert {" ".join(part[:2]) for part in parts if len(part) == 3} == {*headers.values()}
    assert len([path for path in compared if path.suffix == ".h"]) < 10 * len(headers)


def test_a_source_that_becomes_a_link_is_not_followed(builder, tmp_path):
    """Swapped for a link after it was checked, it let the compiler read, and quote, any file of the user's."""
    scratch, secret = tmp_path / "scratch", tmp_path / "secret.txt"
    scratch.mkdir()
    secret.write_text("the password")
    path = scratch / "a.cpp"
    path.write_text(PLAIN)
    request = {"function": "load", "arguments": {"name": "x", "sources": [str(path)]}}
    made = Request.checked(request, builder.solution, [builder.solution.path], scratch)
    path.unlink()
    path.symlink_to(secret)
    for look in (made.files, made.key_parts):
        with pytest.raises(Refused, match="it became a link to another file"):
            look()


@pytest.mark.slow
def test_a_folder_of_headers_that_becomes_a_link_is_not_followed(builder, tmp_path, tmp_path_factory, monkeypatch):
    """After the check: it may lead to a disk that never answers."""
    scratch, elsewhere, seen = tmp_path / "scratch", tmp_path_factory.mktemp("elsewhere"), []
    (scratch / "include").mkdir(parents=True)
    (elsewhere / "a.h").write_text("")
    arguments = {"name": "x", "cpp_sources": ['#include "a.h"'], "extra_include_paths": [f"{scratch}/include"]}
    request = {"function": "load_inline", "arguments": arguments}
    checked = Request.checked(request, builder.solution, [builder.solution.path], scratch)
    (scratch / "include").rmdir()
    (scratch / "include").symlink_to(elsewhere)
    look = os.lstat
    monkeypatch.setattr(os, "lstat", lambda path, **named: seen.append(str(path)) or look(path, **named))
    assert not checked.files() and checked.key_parts()
    assert not [path for path in seen if path.startswith(str(elsewhere))]


def test_places_for_headers_are_counted_over_all_sources(builder, tmp_path):
    """A limit for each of 500 sources held up the judge for minutes."""
    folders = [tmp_path / str(number) for number in range(100)]
    for folder in folders:
        folder.mkdir()
    sources = [tmp_path / f"{number}.cpp" for number in range(20)]
    for source in sources:
        source.write_text("".join(f'#include "{number}.h"\n' for number in range(90)))
    arguments = {"name": "x", "sources": list(map(str, sources)), "extra_include_paths": list(map(str, folders))}
    request = {"function": "load", "arguments": arguments}
    with pytest.raises(Refused, match="name more than 100,000 places"):
        Request.checked(request, builder.solution, [builder.solution.path], tmp_path).files()


def test_behind_a_link_of_the_system_nothing_outside_is_looked_at(builder, tmp_path, tmp_path_factory, monkeypatch):
    """Without its links this path lies in a folder of the system; the system goes up from where a link leads."""
    machine, seen = tmp_path_factory.mktemp("machine"), []
    system, elsewhere = machine / "usr", machine / "elsewhere"
    (system / "bin").mkdir(parents=True)
    (system / "include").mkdir()
    elsewhere.mkdir()
    (system / "bin" / "X11").symlink_to(".")
    monkeypatch.setattr("harness.compile.dependencies.system_paths", lambda places: [str(system)])
    opened = os.open
    monkeypatch.setattr(os, "open", lambda path, *more, **named: seen.append(path) or opened(path, *more, **named))
    folder = f"{system}/bin/X11/../../elsewhere"
    request = {"function": "load_inline", "arguments": {"name": "x", "extra_cflags": [f"-I{folder}"]}}
    with pytest.raises(Refused, match="not the solution's own file and not the system's"):
        Request.checked(request, builder.solution, [builder.solution.path], tmp_path)
    assert seen and not [path for path in seen if "elsewhere" in str(path)]
    request["arguments"]["extra_cflags"] = [f"-I{system}/bin/../include"]
    assert Request.checked(request, builder.solution, [builder.solution.path], tmp_path)


def test_a_request_may_name_its_own_folders_and_the_systems(builder, tmp_path):
    scratch = tmp_path / "scratch"
    (scratch / "include").mkdir(parents=True)
    flags = {"extra_cflags": ["-I/usr/include", "-DHALF=1/2"], "extra_ldflags": ["-L/usr/lib", "-lm"]}
    request = inline(extra_include_paths=[str(scratch / "include"), str(tmp_path)], **flags)
    assert Request.checked(request, builder.solution, [builder.solution.path], scratch)


def test_a_compile_error_is_told_once_with_the_line_of_the_solution(context, solution):
    source = quick().replace(repr(PLAIN), "'''#include <cstddef>\nint f() {\n    return nothing_like_it;\n}'''")
    with pytest.raises(CandidateFailure) as caught:
        build(solution(source), context)
    failure = caught.value
    assert failure.status is Status.BUILD_ERROR
    assert "candidate.py:7: " in failure.message and "return nothing_like_it;" in failure.message
    assert len(re.findall(r"error: .*nothing_like_it", failure.log)) == 1


def test_a_candidate_that_catches_the_error_goes_on(context, solution):
    source = quick(source="syntax error").replace("path =", "try: path =")
    assert build(solution(source + "except RuntimeError as e: assert 'kb_quick' in str(e)"), context).note == ""


@pytest.mark.parametrize(
    ("call", "told"),
    [("load_inline('x', 'int a;', nonsense=1)", "unexpected keyword argument 'nonsense'"),
     ("load_inline('x', 'int a;', functions=5)", "Expected 'functions' to be a list or dict"),
     ("load_inline('x y', 'int a;')", "must be an identifier")],
)  # fmt: skip
def test_a_wrong_call_raises_what_it_would_raise(context, solution, call, told):
    artefact = build(solution(f"from torch.utils.cpp_extension import load_inline\n{call}"), context)
    assert told in artefact.note


@pytest.mark.slow
def test_a_compiler_that_does_not_end_is_ended(context, solution):
    endless = "constexpr int f(unsigned n) { return n ? f(n - 1) + f(n - 1) : 0; } constexpr int a = f(500);"
    flags = "extra_cflags=['-fconstexpr-ops-limit=99999999999', '-fconstexpr-loop-limit=2147483647']"
    source = quick(source=endless).replace("is_python_module", f"{flags}, is_python_module")
    with pytest.raises(CandidateFailure) as caught:
        build(solution(source), dataclasses.replace(context, timeout_s=3))
    assert caught.value.status is Status.TIMEOUT and "longer than 3 s" in caught.value.message


def test_an_extension_built_only_in_the_call_is_built_too(judged, problem):
    source = (
        "import torch.nn as nn\nclass ModelNew(nn.Module):\n    def forward(self, x):\n        "
        + quick("kb_late").strip().replace("\n", "\n        ")
        + "\n        return x.clamp(min=0) if ctypes.CDLL(path).answer() == 42 else x\n"
    )
    result = judged(problem("1/19"), source)
    assert result.status is Status.OK, result.message


def test_a_candidate_that_writes_over_its_library_damages_nobody_elses(context, solution):
    build(solution(quick(more="open(path, 'wb').write(b'poison')")), context)
    checked = quick(more="assert ctypes.CDLL(path).answer() == 42")
    artefact = build(solution(checked, "victim.py"), context)
    assert artefact.cached and artefact.note == ""


def test_a_damaged_entry_is_built_again(context, solution, tmp_path):
    build(solution(quick()), context)
    (library,) = (tmp_path / "cache").rglob("kb_quick.so")
    library.write_bytes(b"poison")
    artefact = build(solution(quick(more="assert ctypes.CDLL(path).answer() == 42")), context)
    assert not artefact.cached and artefact.note == ""


@pytest.mark.parametrize("when", ["was built", "was found"])
def test_a_library_that_leaves_the_cache_at_once_reaches_its_candidate(context, solution, monkeypatch, when):
    """Beside `kb cache clear` a right candidate had a load_error, which --resume kept."""
    source = solution(quick(more="assert ctypes.CDLL(path).answer() == 42"))
    if when == "was found":
        build(source, context)
    name = {"was built": "put", "was found": "get"}[when]
    genuine, gone = getattr(Cache, name), []

    def and_clear(cache, *given):
        entry = genuine(cache, *given)
        if entry and not gone:
            gone.append(cache.clear())
        return entry

    monkeypatch.setattr(Cache, name, and_clear)
    artefact = build(source, context)
    assert gone and artefact.note == "" and not artefact.cached


@pytest.mark.slow
def test_every_operator_compiles_with_the_minimal_headers(tmp_path):
    names = sorted(path.stem for path in (_TORCH_INCLUDE / "ATen/ops").glob("*.h"))
    names = [name for name in names if not re.search(r"_(ops|native|meta|dispatch)$|requires_grad", name)]
    assert len(names) > 1000
    source = "#include <torch/types.h>\nauto f = &at::_ops::relu::call;"
    assert headers.write_minimal_headers(tmp_path, _TORCH_INCLUDE, " ".join(names), "")
    includes = [f"-I{tmp_path}", f"-isystem{_TORCH_INCLUDE}", f"-isystem{_TORCH_INCLUDE}/torch/csrc/api/include"]
    (tmp_path / "all.cpp").write_text(source)
    command = ["c++", "-std=c++20", "-fsyntax-only", *includes, str(tmp_path / "all.cpp")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:2000]
