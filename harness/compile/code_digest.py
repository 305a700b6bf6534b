"""The digest of what a compiler made of a solution: equal for sources that differ in comments, spaces or names.

- A shared library: the loaded sections of the ELF file. Of CUDA code the SASS instructions, which ``cuobjdump`` prints,
  take the place of the fat binary, because that also holds line numbers. Without ``cuobjdump`` there is no digest.
- A Python module: its syntax tree without docstrings. A string that was compiled as an extension is replaced by the
  digest of the library.

References
----------
Tool Interface Standard, ELF Specification 1.2 (1995), and its 64-bit extension: section headers.
"""

from __future__ import annotations

import ast
import functools
import glob
import hashlib
import importlib.util
import os
import re
import shutil
import struct
import subprocess
from pathlib import Path

from harness.compile.artefact import Artefact
from harness.isolated_call import ApartError, TooMuch, apart
from harness.solution.discover import Solution

_ALLOCATED = 0x2  # SHF_ALLOC: loaded when the library is
_MOST_NAME_BYTES = 4096  # of a section; chosen
_NO_BITS = 8  # SHT_NOBITS: zeros, without content in the file
_LEFT_OUT = (b".note.gnu.build-id", b".gnu_debuglink", b".eh_frame", b".eh_frame_hdr")
_FAT_BINARY = b".nv_fatbin"
# Linear in what a library holds: an attempt begins where no other has looked, or ends with the longest name of a file.
_MODULE_NAME = re.compile(
    rb"_INTERNAL_[0-9a-f]{8}_\d+_(?:(?!_INTERNAL_)\w){1,255}?_cu_[0-9a-f]{8}(_\d+)?|(?<!\w)\w*_s\d+\.cu\b|tmpxft_\w+"
)
_SASS_LINE = re.compile(r"^[ \t]*(/\*[0-9a-f]{4,}\*/.*|\.headerflags.*|Function : .*)$", re.MULTILINE)
_TIMEOUT_S = 120


def code_digest(solution: Solution, artefact: Artefact) -> str | None:
    """Return the digest; None where nothing can be said, as for prebuilt libraries or without ``cuobjdump``."""
    if solution.helpers or solution.kind == "so":
        return None
    try:
        if solution.kind == "py":
            return _of_python(solution.path, artefact)
        return library_digest(artefact.library) if artefact.library else None
    except (OSError, ValueError, struct.error, subprocess.SubprocessError, ApartError, TooMuch):
        return None


@functools.lru_cache(maxsize=256)
def library_digest(path: Path) -> str | None:
    """Return the digest of the code and data of a shared library; None for CUDA code without ``cuobjdump``."""
    digest = hashlib.sha256()
    for name, content in sections(path.read_bytes()):
        if name == _FAT_BINARY:
            sass = _sass(path)
            if sass is None:
                return None
            content = sass.encode()
        digest.update(name + b"\0" + _MODULE_NAME.sub(b"module", content) + b"\0")
    return digest.hexdigest()


def sections(elf: bytes) -> list[tuple[bytes, bytes]]:
    """Return name and content of the sections that are loaded, but for build numbers and unwinding tables.

    Raises ValueError for a file that is no 64-bit little-endian ELF, has no names of sections or 65,280 and more of
    them, or whose sections have more bytes than it has.
    """
    if elf[:6] != b"\x7fELF\x02\x01":
        raise ValueError("not a 64-bit little-endian ELF file")
    (offset,) = struct.unpack_from("<Q", elf, 0x28)
    size, count, names_at = struct.unpack_from("<HHH", elf, 0x3A)
    if names_at >= count:
        raise ValueError("it has no table of sections, or more of them than the header can count")
    headers = [struct.unpack_from("<IIQQQQ", elf, offset + index * size) for index in range(count)]
    if sum(length for _, kind, flags, _, _, length in headers if flags & _ALLOCATED and kind != _NO_BITS) > len(elf):
        raise ValueError("its sections overlap")
    names = elf[headers[names_at][4] :]
    found = []
    for name_at, kind, flags, _, begin, length in headers:
        name = names[name_at : names.index(b"\0", name_at, name_at + _MOST_NAME_BYTES)]
        if flags & _ALLOCATED and kind != _NO_BITS and name not in _LEFT_OUT:
            found.append((name, elf[begin : begin + length]))
    return found


def _sass(library: Path) -> str | None:
    """Return the instructions of a library's kernels, without what depends on its file; None without the tool."""
    tool = cuobjdump()
    if tool is None:
        return None
    done = subprocess.run([tool, "-sass", str(library)], capture_output=True, text=True, timeout=_TIMEOUT_S)
    if done.returncode:
        return None
    return "\n".join(match[1] for match in _SASS_LINE.finditer(done.stdout))


@functools.cache
def cuobjdump() -> str | None:
    """Return the path of the CUDA toolkit's ``cuobjdump``, or of the one that Triton brings; None without either."""
    homes = [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if name in os.environ]
    places = [f"{home}/bin/cuobjdump" for home in (*homes, "/usr/local/cuda")]
    if spec := importlib.util.find_spec("triton"):
        for folder in spec.submodule_search_locations or []:
            places += glob.glob(f"{folder}/backends/nvidia/bin/cuobjdump")
    return shutil.which("cuobjdump") or next((place for place in places if os.access(place, os.X_OK)), None)


def _of_python(path: Path, artefact: Artefact) -> str | None:
    """Return the digest of a module; None where one of its extensions has none."""
    libraries = [library_digest(Path(library)) for library in artefact.extensions]
    if None in libraries:
        return None
    tree = apart("harness.compile.code_digest:tree_digest", str(path), list(artefact.compiled_sources))
    return hashlib.sha256("\n".join([tree, *libraries]).encode()).hexdigest()


def tree_digest(path: str, compiled: list[str]) -> str:
    """Return the digest of a module's syntax tree without docstrings, and without strings of these digests."""
    tree = _WithoutDocstrings(set(compiled)).visit(ast.parse(Path(path).read_bytes()))
    return hashlib.sha256(ast.dump(tree).encode(errors="backslashreplace")).hexdigest()


class _WithoutDocstrings(ast.NodeTransformer):
    """Removes docstrings, and the text of strings whose digests are in ``compiled``."""

    def __init__(self, compiled: set[str]):
        self._compiled = compiled

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            return None
        return self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, str) and text_digest(node.value) in self._compiled:
            return ast.Constant("compiled")
        return node


def text_digest(text: str) -> str:
    """Return the SHA-256 of a string of a module."""
    return hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()
