"""Flags that an extension may pass to its compilers, and the paths in them.

Compilers load code, start other programs or read lists of further flags where some flags say so (``-fplugin``, ``-B``,
``-specs``, ``-wrapper``, ``-ccbin``, ``@file``, plugins of linkers). So only flags that are known to decide how code
is translated are passed on, and of the others none.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

FLAGS = ("extra_cflags", "extra_cuda_cflags", "extra_ldflags")  # arguments of PyTorch's load and load_inline
SEARCHED = ("-isystem", "-iquote", "-idirafter", "-I")  # their values are folders of headers
_VALUED = (*SEARCHED, "-include", "-L", "-l", "-D", "-U")  # the value follows at once, or is the next word
_LIBRARY_FILE = re.compile(r"/.*\.(so(\.\d+)*|a|o)")
_NAME = r"[\w.+-]+"

# GCC and Clang. What -f and -m begin has no value with a path, is no plugin, and writes no file of a name of its own.
# -flto with a value, as auto, has make run.
_HOST = re.compile(
    rf"-O\w*|-g\w*|-std={_NAME}|-ansi|-w|-pedantic|-W[\w=+-]+|-pipe|-pthread|-shared|-s|-rdynamic"
    r"|-static-(libgcc|libstdc\+\+)"
    r"|-f(?!plugin|pass-plugin|lto=|dump|opt-info|profile|callgraph|compare-debug|save-|diagnostics-(format|set|add))"
    rf"[A-Za-z][\w-]*(=[\w.,+-]+)?|-m(?!llvm)[a-z0-9][\w.-]*(={_NAME})?"
)
_LINKER = re.compile(
    rf"/.*|--(no-)?as-needed|--(no-)?whole-archive|-rpath(-link)?(=/.*)?|-soname(={_NAME})?|-z|now|lazy|relro|defs"
    r"|--gc-sections|--export-dynamic|-E|-s|--strip-(all|debug)|-O\d|-B(symbolic(-functions)?|static|dynamic)"
    r"|--(start|end)-group|--allow-multiple-definition|--no-undefined"
)

# nvcc, by its long and short names, as words separated by hyphens.
_NVCC_PLAIN = frozenset(
    "g G w O0 O1 O2 O3 lineinfo generate-line-info device-debug debug use-fast-math restrict disable-warnings m64 "
    "expt-relaxed-constexpr expt-extended-lambda extended-lambda extra-device-vectorization res-usage resource-usage "
    "Wno-deprecated-gpu-targets Wno-deprecated-declarations Wreorder Wdefault-stream-launch allow-unsupported-compiler "
    "display-error-number source-in-ptx shared".split()
)
_NVCC_VALUED = frozenset(
    "O optimize std arch gpu-architecture code gpu-code gencode generate-code maxrregcount ftz prec-div prec-sqrt fmad "
    "t threads default-stream rdc relocatable-device-code cudart diag-suppress diag-error diag-warn split-compile "
    "Ofast-compile dopt".split()
)
_NVCC_VALUE = re.compile(r"[\w+][\w.,:=+\[\]-]*")
_NVCC_TOOLS = {  # whose flags they pass on, and which those may be
    **dict.fromkeys(("Xptxas", "ptxas-options", "Xnvlink", "nvlink-options"), re.compile(r"-?-?\w[\w=.-]*")),
    "Xcudafe": re.compile(r"--(diag_\w+=\w+|display_error_number)"),
}
_NVCC_HOST = frozenset(("Xcompiler", "compiler-options"))
_NVCC_LINKER = frozenset(("Xlinker", "linker-options"))
_NVCC_TAKES_A_VALUE = _NVCC_VALUED | _NVCC_HOST | _NVCC_LINKER | _NVCC_TOOLS.keys()


def taken_apart(flags: list[str], for_nvcc: bool) -> list[tuple[str, str]]:
    """Return option and value of each flag, as a shell takes them apart; "" where there is no value, or no option.

    Raises ValueError that names the first flag which is not passed to a compiler.
    """
    return list((_of_nvcc if for_nvcc else _of_the_host)(_words(flags)))


def quoted(flags: list[str]) -> list[str]:
    """Return the same words such that a shell changes none of them: it puts names of files for patterns."""
    return [shlex.quote(word) for word in _words(flags)]


def _words(flags: list[str]) -> list[str]:
    try:
        return shlex.split(" ".join(flags))
    except ValueError as error:
        raise ValueError(f"cannot take its flags apart: {error}") from None


def paths(pairs: list[tuple[str, str]]) -> Iterator[str]:
    """Yield the absolute paths in flags that were taken apart."""
    for option, value in pairs:
        if option not in ("-D", "-U") and (path := value.lstrip("=")).startswith("/"):
            yield path


def _of_the_host(words: list[str]) -> Iterator[tuple[str, str]]:
    left = iter(words)
    for word in left:
        if pair := _valued(word, left):
            yield pair
        elif word.startswith("-Wl,"):
            yield from _of_the_linker(word.split(",")[1:])
        elif word == "-Xlinker":
            yield from _of_the_linker([next(left, "")])
        elif _LIBRARY_FILE.fullmatch(word):
            yield "", word
        elif _HOST.fullmatch(word):
            yield word, ""
        else:
            raise _not_passed(word)


def _of_nvcc(words: list[str]) -> Iterator[tuple[str, str]]:
    left = iter(words)
    for word in left:
        form = re.fullmatch(r"--?([A-Za-z][\w-]*)(=(.*))?", word)
        name = form[1].replace("_", "-") if form else ""
        if name in _NVCC_PLAIN and not form[2]:
            yield word, ""
        elif name in _NVCC_TAKES_A_VALUE:
            value = form[3] if form[2] else next(left, "")
            yield from _value_of_nvcc(name, value)
        elif pair := _valued(word, left):
            yield pair
        else:
            raise _not_passed(word)


def _value_of_nvcc(name: str, value: str) -> Iterator[tuple[str, str]]:
    pieces = re.split(r"[,\s]+", value)
    if name in _NVCC_HOST:
        yield from _of_the_host(pieces)
    elif name in _NVCC_LINKER:
        yield from _of_the_linker(pieces)
    elif all(map(_NVCC_TOOLS[name].fullmatch, pieces)) if name in _NVCC_TOOLS else _NVCC_VALUE.fullmatch(value):
        yield name, value
    else:
        raise _not_passed(f"{name} {value}")


def _of_the_linker(pieces: list[str]) -> Iterator[tuple[str, str]]:
    for piece in pieces:
        if not _LINKER.fullmatch(piece):
            raise _not_passed(f"-Wl,{piece}")
        yield "-Wl", piece.partition("=")[2] or piece


def _valued(word: str, left: Iterator[str]) -> tuple[str, str] | None:
    """Return the option that ``word`` begins with, and its value, which may be the next word; None for another word."""
    option = next((option for option in _VALUED if word.startswith(option)), None)
    if option is None:
        return None
    value = word.removeprefix(option) or next(left, "")
    # what another option begins with (-include-pch, nvcc's -ldir), and what a second shell would take apart
    if value.startswith("-") or re.search(r"\s", value) or (option == "-l" and not _is_library(value)):
        raise _not_passed(f"{option} {value}")
    return option, value


def _is_library(name: str) -> bool:
    return bool(re.fullmatch(r":?[\w.+-]+", name)) and name != "dir"


def _not_passed(flag: str) -> ValueError:
    return ValueError(f"{flag[:200]} is not among the flags that extensions pass to compilers (docs/evaluating.md)")
