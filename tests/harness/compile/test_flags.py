"""Flags of extensions: those that decide how code is translated reach a compiler, and no others do."""

import subprocess

import pytest

from harness.compile.extension.flags import SEARCHED, paths, quoted, taken_apart
from harness.compile.toolchain import host_compiler, nvcc

HOST = [
    "-O3 -g -std=c++20 -Wall -Wno-unused-variable -Werror=return-type -w -pedantic -pipe",
    "-march=native -mtune=native -msse4.1 -m64 -mprefer-vector-width=256",
    "-ffast-math -fopenmp -fno-math-errno -funroll-loops -fconstexpr-loop-limit=2147483647 -fvisibility=hidden",
    "-flto -fsanitize-recover=address,undefined -fno-plt",
    "-DFLOOR=0.0f -D HALF=1/2 -UNDEBUG -DWORD=a",
    "-I/usr/include -I /usr/include -isystem /usr/include -include /usr/include/limits.h",
    "-pthread -rdynamic -s -static-libgcc -L/usr/lib -lm -l m -l:libm.so.6",
    "-Wl,-rpath,/usr/lib -Wl,--no-as-needed -Wl,-rpath=/usr/lib,-z,now -Xlinker -O1 -Wl,--gc-sections",
]
NVCC = [
    "-O3 --use_fast_math -lineinfo -G -w --extended-lambda --expt-relaxed-constexpr -std=c++17 --std c++17 -restrict",
    "-gencode arch=compute_90,code=sm_90 --generate-code=arch=compute_90a,code=[sm_90a,compute_90a] -t 2 --threads=2",
    "--maxrregcount=48 -maxrregcount 48 -prec-div=false --ftz=true --fmad true --diag-suppress=177 -rdc=true",
    "-Xptxas -O3 -Xptxas -v,-dlcm=cg --ptxas-options=-v --ptxas-options=--warn-on-spills -Xcudafe --diag_suppress=177",
    "-Xcompiler -fPIC -Xcompiler=-O3,-march=native --compiler-options '-fopenmp -O2' -Xlinker --no-as-needed",
    "-DFLOOR=0.0f -I/usr/include -I /usr/include -include /usr/include/limits.h -lcublas -L/usr/lib",
]
REFUSED_ANYWHERE = [
    "-fplugin=/usr/x.so", "-fplugin=x", "-fplugin-arg-x-a=b", "-fpass-plugin=x", "-B.", "-B /tmp", "-specs=x",
    "--specs=x", "-wrapper x", "@flags", "-imacros /usr/include/limits.h", "-isysroot /usr", "--sysroot=/usr",
    "-fprofile-use=/usr/x", "-mllvm -load=x", "-Xclang -load", "-o x", "-x c", "-Wl,-plugin,x", "-Wl,@x", "-Wa,-o,x",
    "-Wp,-MD,x", "-T x", "x.so", "-include -fplugin=x", "-include-pch x", "-I -fplugin=x", "-l../x",
    "-DA='a -fplugin=x'", "-I'/usr -fplugin=x'", "-O2*", "-Xpreprocessor -x", "-save-temps=/x", "-###",
    "-no-canonical-prefixes", "-fmodule-mapper=|x", "-fdump-tree-original=x", "-fopt-info-vec=x", "-fprofile-use=x",
    "-fdiagnostics-format=json-file", "-fcompare-debug=-x", "-flto=auto", "-flto=4",
]  # fmt: skip
REFUSED_BY_NVCC = [
    "-ccbin x", "--compiler-bindir=x", "-Xcompiler -fplugin=x", "-Xcompiler '-O2 -fplugin=x'",
    "--compiler-options=-B,x", "-Xcompiler=-wrapper,x", "-optf x", "--options-file=x", "-Xlinker -plugin", "-ldir x",
    "--libdevice-directory=x", "-maxrregcount -ccbin", "-Xcicc -load", "--run", "-keep", "--dryrun", "-odir x",
    "-Xptxas '-v;x'", "-g=x", "-forward-unknown-to-host-compiler", "-std '17 -ccbin'", "-Xcudafe --gen_c_file_name=x",
    "--pre-include x",
]  # fmt: skip


def translated(folder, compiler, source, flags):
    """Give a compiler the source and the flags, as a shell does."""
    (folder / source).write_text("void f() {}\n")
    command = f"{compiler} {source} -shared -o a.so {flags}"
    return subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True)


@pytest.mark.parametrize("flags", HOST)
def test_flags_of_the_host_compiler_are_passed_on_and_it_knows_them(flags, tmp_path):
    assert taken_apart([flags], for_nvcc=False)
    done = translated(tmp_path, f"{host_compiler().path} -fPIC", "a.cpp", flags)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(nvcc() is None, reason="needs nvcc")
@pytest.mark.parametrize("flags", NVCC)
def test_flags_of_nvcc_are_passed_on_and_it_knows_them(flags, tmp_path):
    assert taken_apart([flags], for_nvcc=True)
    done = translated(tmp_path, f"{nvcc().path} --dryrun", "a.cu", flags)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("flags", REFUSED_ANYWHERE)
@pytest.mark.parametrize("for_nvcc", [False, True])
def test_flags_that_load_start_or_write_something_are_refused_by_name(flags, for_nvcc):
    with pytest.raises(ValueError, match="not among the flags"):
        taken_apart(["-O2", flags], for_nvcc)


@pytest.mark.parametrize("flags", REFUSED_BY_NVCC)
def test_flags_of_nvcc_that_do_so_are_refused_by_name(flags):
    with pytest.raises(ValueError, match="not among the flags"):
        taken_apart(["-O2", flags], for_nvcc=True)


def test_flags_are_taken_apart_as_one_line_of_a_shell():
    assert taken_apart(["-D", "A=1", "-O2 -I", "'/a'"], for_nvcc=False) == [("-D", "A=1"), ("-O2", ""), ("-I", "/a")]
    with pytest.raises(ValueError, match="No closing quotation"):
        taken_apart(["-O2", "'"], for_nvcc=False)


def test_quoted_flags_are_the_same_words_to_a_shell_where_files_match_them(tmp_path):
    """A shell put the names of files for the pattern, one of them a flag that starts another program."""
    (tmp_path / "-wrapper").write_text("")
    flags = ["-O2 -I [+-]*", "-DNAME='\"a b\"'", "~", "#"]
    shown = subprocess.run(f"printf '%s\\n' {' '.join(quoted(flags))}", shell=True, cwd=tmp_path, capture_output=True)
    assert shown.stdout.decode().splitlines() == ["-O2", "-I", "[+-]*", '-DNAME="a b"', "~", "#"]


def test_the_paths_in_flags_are_told():
    flags = ["-I/a -isystem /b", "-I=/c -DX=/no", "-L/d -Wl,-rpath,/e -Wl,-rpath=/f", "/g/libx.so.1", "-include /h.h"]
    pairs = taken_apart(flags, for_nvcc=False)
    assert list(paths(pairs)) == ["/a", "/b", "/c", "/d", "/e", "/f", "/g/libx.so.1", "/h.h"]
    assert [value for option, value in pairs if option in SEARCHED] == ["/a", "/b", "=/c"]
    inside = taken_apart(["-Xcompiler=-I/a", "-Xlinker -rpath -Xlinker /b", "-I /c"], for_nvcc=True)
    assert list(paths(inside)) == ["/a", "/b", "/c"]
