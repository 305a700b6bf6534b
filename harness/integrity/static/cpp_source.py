"""Findings in C++ and CUDA, by tokens."""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

from harness.integrity.static.rules import Finding

# Every alternative that begins also ends, at the end of its line at the latest, so that nothing is scanned twice;
# raw strings end where ``_tokens`` finds their mark.
_TOKENS = re.compile(
    r"""(?P<comment>//[^\n]*|/\*)
      | (?P<raw>R"(?P<mark>[^\s()\\"]{0,16})\()
      | (?P<string>"(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'?)
      | (?P<include>\#[ \t]*include[^\n]*)
      | (?P<number>\.?\d(?:'?[\w.]|(?<=[eEpP])[+-])*)
      | (?P<name>[A-Za-z_]\w*)
      | (?P<mark2><<<|>>>|::|->|[^\s\w])""",
    re.DOTALL | re.VERBOSE,
)

# A name as a whole -> rule
_NAMES = {
    "files": "fopen fread fwrite ofstream ifstream fstream mmap shm_open memfd_create tmpfile",
    "threads": "pthread_create thread jthread async cudaLaunchHostFunc cudaStreamAddCallback",
    "network": "socket connect getaddrinfo gethostbyname",
    "process_control": "fork vfork execv execve execvp system popen _exit _Exit exit quick_exit abort kill raise "
    "signal sigaction ptrace",
    "foreign_code": "dlopen dlsym dlmopen cuModuleLoad cuModuleLoadData nvrtcCompileProgram",
    "environment": "getenv setenv putenv unsetenv",
    "cache_control": "cudaDeviceSetLimit cudaCtxResetPersistingL2Cache cudaDeviceSetCacheConfig accessPolicyWindow "
    "cudaFuncSetCacheConfig",
    "streams": "cudaStreamCreate cudaStreamCreateWithFlags cudaStreamCreateWithPriority getStreamFromPool",
    "clock": "cudaEventElapsedTime cudaEventRecord clock_gettime gettimeofday steady_clock high_resolution_clock",
    "fast_math": "__expf __exp10f __logf __log2f __log10f __powf __sinf __cosf __sincosf __tanf __fdividef "
    "__frsqrt_rn rsqrt_approx use_fast_math",
    "lower_precision": "__half half __half2 half2 __nv_bfloat16 nv_bfloat16 __nv_bfloat162 bfloat16_t half_t tf32",
}
_RULE_OF = {name: rule for rule, names in _NAMES.items() for name in names.split()}
_PREFIXES = {"cublas": "library_call", "cudnn": "library_call", "cusparse": "library_call", "cufft": "library_call",
             "cusolver": "library_call", "cudaGraph": "cuda_graph", "cudaStreamBeginCapture": "cuda_graph",
             "cudaIpc": "introspection"}  # fmt: skip
_QUALIFIED_ONLY = {"thread": "std", "jthread": "std", "async": "std"}  # common as names of one's own
_CALLED_ONLY = {"system", "exit", "abort", "kill", "raise", "signal", "connect", "socket", "fork"}
# Names by which a source shows that it knows of strides: it asks, makes a copy, or uses accessors.
KNOWS_STRIDES = {"contiguous", "is_contiguous", "stride", "strides", "accessor", "packed_accessor32",
                 "packed_accessor64", "CHECK_CONTIGUOUS", "CHECK_INPUT", "is_non_overlapping_and_dense"}  # fmt: skip
_ADDRESSES = {"data_ptr", "const_data_ptr", "mutable_data_ptr"}
_STREAM_ARGUMENT = 3  # of a launch's four, counted from 0
# Functions of PyTorch's C++ interface that only make memory or describe it.
_MAKES_MEMORY = {
    "empty", "empty_like", "zeros", "zeros_like", "ones", "ones_like", "full", "full_like", "empty_strided",
    "from_blob", "Tensor", "TensorOptions", "Device", "IntArrayRef", "ArrayRef", "dtype", "device",
    "Generator", "ScalarType",
}  # fmt: skip


class _Token(NamedTuple):
    text: str
    line: int
    is_name: bool


def find(source: str, file: str, first_line: int = 1) -> list[Finding]:
    """``first_line`` is where the source begins in ``file``."""
    tokens = _tokens(source, first_line)
    found = [Finding(file, token.line, rule, token.text) for token, rule in _named(tokens)]
    found += [Finding(file, line, "library_call", code) for line, code in _library_functions(tokens)]
    found += [Finding(file, line, "unlaunched_kernel", name) for line, name in _unlaunched(tokens)]
    return found


def find_in_extension(source: str, file: str, first_line: int) -> list[Finding]:
    """Return ``find``, and launches in the default stream: an extension is called in PyTorch's current one."""
    lines = _without_stream(_tokens(source, first_line))
    return find(source, file, first_line) + [Finding(file, line, "default_stream", "<<<") for line in lines]


def addresses(source: str, first_line: int = 1) -> tuple[int | None, bool]:
    """Return the line that first takes a tensor's address, None without one, and whether strides are known of."""
    tokens = [token for token in _tokens(source, first_line) if token.is_name]
    taken = next((token.line for token in tokens if token.text in _ADDRESSES), None)
    return taken, any(token.text in KNOWS_STRIDES for token in tokens)


def _without_stream(tokens: list[_Token]):
    """Lines of launches without a stream among their arguments."""
    for index, token in enumerate(tokens):
        if token.text != "<<<":
            continue
        depth = commas = 0
        for inner in tokens[index + 1 :]:
            if inner.text == ">>>":
                if commas < _STREAM_ARGUMENT:
                    yield token.line
                break
            depth += (inner.text in "([{") - (inner.text in ")]}")
            commas += inner.text == "," and depth == 0


def _tokens(source: str, first_line: int) -> list[_Token]:
    tokens, line, begin, position = [], first_line, 0, 0
    while match := _TOKENS.search(source, position):
        line += source.count("\n", begin, match.start())
        begin, position = match.start(), match.end()
        if match["name"] or match["mark2"]:
            tokens.append(_Token(match[0], line, match["name"] is not None))
        elif match["raw"]:
            position = _behind(source, f"){match['mark']}\"", position)
        elif match[0] == "/*":
            position = _behind(source, "*/", position)
    return tokens


def _behind(source: str, end: str, position: int) -> int:
    """Return where what ends with ``end`` is over: at the end of the source if it has none."""
    found = source.find(end, position)
    return len(source) if found < 0 else found + len(end)


def _named(tokens: list[_Token]):
    for index, token in enumerate(tokens):
        if not token.is_name:
            continue
        rule = _RULE_OF.get(token.text)
        rule = rule or next((r for prefix, r in _PREFIXES.items() if token.text.startswith(prefix)), None)
        if rule is None or (token.text in _CALLED_ONLY and not _is_called(tokens, index)):
            continue
        wanted = _QUALIFIED_ONLY.get(token.text)
        if wanted and not (index >= 2 and tokens[index - 1].text == "::" and tokens[index - 2].text == wanted):
            continue
        yield token, rule


def _is_called(tokens: list[_Token], index: int) -> bool:
    after = tokens[index + 1].text if index + 1 < len(tokens) else ""
    before = tokens[index - 1].text if index else ""
    return after == "(" and before not in (".", "->")


def _library_functions(tokens: list[_Token]):
    """at::f(...) and torch::f(...)"""
    for space, colons, name, bracket in zip(tokens, tokens[1:], tokens[2:], tokens[3:]):
        if space.text in ("at", "torch") and colons.text == "::" and name.is_name and bracket.text == "(":
            if name.text not in _MAKES_MEMORY and not name.text.startswith("k"):
                yield name.line, f"{space.text}::{name.text}"


def _unlaunched(tokens: list[_Token]):
    """Kernels whose name occurs nowhere but in their own declarations."""
    uses = Counter(token.text for token in tokens if token.is_name)
    kernels: dict[str, list[int]] = {}
    closing = _brackets(tokens)
    for index, token in enumerate(tokens):
        if token.text == "__global__" and (name := _declared(tokens, index, closing)):
            kernels.setdefault(name.text, []).append(name.line)
    for name, lines in kernels.items():
        if uses[name] <= len(lines):
            yield lines[0], name


def _declared(tokens: list[_Token], start: int, closing: dict[int, int]) -> _Token | None:
    """The name before the parameters of the function that starts at ``start``; looks no further than the next one."""
    index = start + 1
    while index + 1 < len(tokens) and tokens[index].text not in (";", "{", ")", "__global__"):
        token, after = tokens[index], tokens[index + 1]
        if token.text == "__launch_bounds__" and after.text == "(":
            index = closing.get(index + 1, len(tokens))
        elif token.is_name and after.text == "(":
            return token
        index += 1
    return None


def _brackets(tokens: list[_Token]) -> dict[int, int]:
    """Index of each opening bracket -> that of the one which closes it."""
    closing, open_ones = {}, []
    for index, token in enumerate(tokens):
        if token.text == "(":
            open_ones.append(index)
        elif token.text == ")" and open_ones:
            closing[open_ones.pop()] = index
    return closing
