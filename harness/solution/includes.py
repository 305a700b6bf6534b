"""The local files that a C++ or CUDA source includes: they decide what it compiles to as much as the source does.

Found are more than the compiler reads: every existing file that a line of the preprocessor names, in whatever
spelling. A build may read these and the system's, so that what is not found here is not compiled either.
"""

from __future__ import annotations

import codecs
import contextlib
import errno
import hashlib
import io
import os
import re
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from harness.limits import MAX_HEADER_BYTES, MAX_INCLUDED_BYTES, MAX_INCLUDED_FILES, MAX_LOOKUPS, MAX_SOURCE_BYTES
from harness.solution.encoding import declared_encoding

DEVICES = (Path("/dev"),)  # where a confined process can open any
_PIECE_BYTES = 1 << 20
_MOST_LINKS = 40  # as the system's
_DEEPEST = 100  # folders in each other
_LEADS_OUT = "it leads out of the folders that it may lie in, or too deep into them"
_LOOKUPS_S = 10.0  # of processor time; a hundred thousand places take half of that
_LINES_BETWEEN = 1000  # two looks at the time
_CONTINUED = re.compile(r"\\[ \t]*\r?\n")
_HASHES = ("#", "%:", "??=")  # by which a line of the preprocessor begins
_NAME = re.compile(r'"(?P<quoted>[^"\n]+)"|<(?P<angled>[^<>\n]+)>')


@dataclass
class Lookups:
    """Places where headers were looked for, of sources that are read one after the other, by one thread."""

    count: int = 0
    begun_s: float = field(default_factory=time.thread_time)

    def one_more(self) -> None:
        """Raise OSError where it is too many, or takes the processor long: a path may lead through links of links."""
        self.count += 1
        if self.count > MAX_LOOKUPS:
            raise OSError(errno.E2BIG, f"its includes and include paths name more than {MAX_LOOKUPS:,} places")
        self.no_longer()

    def no_longer(self) -> None:
        """Raise OSError where they take the processor long."""
        if time.thread_time() - self.begun_s > _LOOKUPS_S:
            raise OSError(errno.E2BIG, f"to look for what it includes takes more than {_LOOKUPS_S:g} s")


def local_includes(
    source: str,
    folder: Path | None,
    search: list[Path],
    allowed: Callable[[Path], bool] = lambda path: True,
    lookups: Lookups | None = None,
    below: Sequence[Path] = (),
) -> dict[Path, str]:
    """Path and text of every file that ``source`` can reach through its includes.

    Looked for beside the including file (``folder`` for the source itself) and in
    the folders of ``search``, real paths; what is in neither is the toolchain's. Only files whose
    real path is ``allowed`` are opened, and nothing is looked at that does not lie ``below`` one of some folders, if
    there are any: see ``reached``. Branches of the preprocessor are not evaluated.

    Raises OSError where these are more, or larger, than sources are, or are no plain files, and where there are too
    many places to look, with those of ``lookups``.
    """
    found: dict[Path, str] = {}
    left, lookups = MAX_INCLUDED_BYTES, lookups or Lookups()
    pending = [(source, folder)]
    while pending:
        text, beside = pending.pop()
        for path in _places(text, beside, search, lookups):
            lookups.one_more()
            file = _file_at(path, below)
            if file is None or file in found or not allowed(file):
                continue
            data = read_bytes(file, MAX_HEADER_BYTES, in_place=True)
            found[file] = data.decode(errors="replace")
            left -= len(data)
            if left < 0 or len(found) > MAX_INCLUDED_FILES:
                most = f"{MAX_INCLUDED_FILES} files or {MAX_INCLUDED_BYTES >> 20} MiB"
                raise OSError(errno.EFBIG, f"it includes more than {most} of headers")
            pending.append((found[file], file.parent))
    return found


def included_link(source: str, folder: Path, root: Path) -> str:
    """Return the first path below ``root`` that a source, or what it includes, includes by a link; '' without one.

    A link is no file of a solution's: what it is called, and whether it is hidden, its own path would not say.
    """
    lookups = Lookups()
    with contextlib.suppress(OSError, ValueError):  # the build says what is wrong
        found = local_includes(source, folder, [], lookups=lookups, below=(root,))
        for text, beside in ((source, folder), *((text, file.parent) for file, text in found.items())):
            for path in map(os.path.normpath, _places(text, beside, [], lookups)):
                lookups.one_more()
                file = _file_at(path, (root,))
                if file is not None and str(file) != path:
                    return os.path.relpath(path, root)
    return ""


def _places(source: str, beside: Path | None, search: list[Path], lookups: Lookups) -> Iterator[str]:
    """Yield every path that a line of the preprocessor may mean, below the real paths of its folders."""
    first = [os.path.realpath(beside)] if beside else []
    for name, quoted in _names(source, lookups):
        places = ["/"] if os.path.isabs(name) else [*first, *search] if quoted else search
        for place in places:
            yield os.path.join(place, name)


def _names(source: str, lookups: Lookups) -> Iterator[tuple[str, bool]]:
    """Yield each name that a line of the preprocessor has in quotes or angle brackets, and whether in quotes.

    Raises OSError where ``lookups`` take the processor long: lines without a name take time, too.
    """
    seen = set()
    for number, line in enumerate(_CONTINUED.sub("", source).splitlines()):
        if number % _LINES_BETWEEN == 0:
            lookups.no_longer()
        if any(hash_ in line for hash_ in _HASHES):
            for match in _NAME.finditer(line):
                name = match["quoted"] or match["angled"], bool(match["quoted"])
                if name not in seen:
                    seen.add(name)
                    yield name


def _file_at(path: str, below: Sequence[Path]) -> Path | None:
    """Return the real path of a file, or of a device or pipe, which ``read_bytes`` then refuses; None for others."""
    try:
        if not below:
            return real_path(path) if os.path.exists(path) and not os.path.isdir(path) else None
        real, mode = reached(path, below)
    except (OSError, ValueError):
        return None
    return real if mode and not stat.S_ISDIR(mode) else None


def reached(path: str | os.PathLike[str], folders: Sequence[Path]) -> tuple[Path, int]:
    """Return the real path of one that others chose, and its mode; 0 where nothing is there.

    Nothing is looked at that does not lie below one of the folders: it may be on a disk of the network that never
    answers, or nobody's business. A link is followed where the path in it says so of itself. Raises OSError where a
    path or a link leads out, and behind more than 40 links; ValueError for what is no path.
    """
    path = os.fspath(path)
    for _ in range(_MOST_LINKS):
        parts = Path(path).parts
        start = next((folder for folder in folders if parts[: len(folder.parts)] == folder.parts), None)
        if start is None:
            break
        real, mode, link = _walked(start, parts[len(start.parts) :])
        if not link:
            return real, mode
        path = link
    raise OSError(errno.EXDEV, _LEADS_OUT, path)


def _walked(start: Path, parts: tuple[str, ...]) -> tuple[Path, int, str]:
    """Go from a folder up to the end or the first link: return where that is, its mode, and the path by the link."""
    places = [os.open(start, os.O_PATH | os.O_CLOEXEC)]
    try:
        names = [os.readlink(f"/proc/self/fd/{places[0]}")]
        for index, part in enumerate(parts):
            if part == ".." and len(places) > 1:
                os.close(places.pop())
                names.pop()
                continue
            if part == ".." or len(places) > _DEEPEST:
                raise OSError(errno.EXDEV, _LEADS_OUT, str(start))
            try:
                places.append(os.open(part, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=places[-1]))
            except (FileNotFoundError, NotADirectoryError):
                if ".." in parts[index:]:
                    raise
                return Path(*names, *parts[index:]), 0, ""
            if stat.S_ISLNK(os.fstat(places[-1]).st_mode):
                return Path(), 0, os.path.join(*names, os.readlink("", dir_fd=places[-1]), *parts[index + 1 :])
            names.append(part)
        return Path(*names), os.fstat(places[-1]).st_mode, ""
    finally:
        for place in places:
            os.close(place)


def real_path(path: str | os.PathLike[str]) -> Path:
    """Return the real path of one that others chose, as the system finds it: ``realpath`` may take seconds for that.

    Of what is not there it is that of the folder which is, and the rest. Raises OSError where the system finds none,
    as behind more than 40 links, and where what is not there is left again: links may lie behind that.
    """
    here, rest = os.fspath(path), []
    while True:
        try:
            return Path(os.path.normpath(existing(here).joinpath(*rest)))
        except (FileNotFoundError, NotADirectoryError):
            here, name = os.path.split(here.rstrip("/"))
            if name == "..":
                raise
            here, rest = here or ("." if not os.path.isabs(path) else "/"), [name, *rest]


def existing(path: str | os.PathLike[str]) -> Path:
    """Return the real path of what is there; OSError where nothing is."""
    place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        return Path(os.readlink(f"/proc/self/fd/{place}"))
    finally:
        os.close(place)


def read_source(path: Path, most: int = MAX_SOURCE_BYTES, in_place: bool = False) -> str:
    """Return a file as text to be searched; two files may have the same text, so digests are of bytes.

    Raises OSError also for a Python source that declares another encoding than UTF-8: Python runs another text.
    """
    data = read_bytes(path, most, in_place)
    if path.suffix == ".py":
        data = data.removeprefix(codecs.BOM_UTF8)
        if (encoding := declared_encoding(data)) not in ("", "utf-8"):
            what = f"it declares the encoding {encoding}, and a Python source must be UTF-8"
            raise OSError(errno.EILSEQ, what, str(path))
    return data.decode(errors="replace")


def read_bytes(path: Path, most: int = MAX_SOURCE_BYTES, in_place: bool = False) -> bytes:
    """The content of a file that a candidate names; OSError for what is no plain file or too large to be source."""
    with open_plain(path, in_place) as file:
        size, pieces, taken = os.fstat(file.fileno()).st_size, [], 0
        while size <= most and taken <= most and (piece := file.read(_PIECE_BYTES)):  # it may grow meanwhile
            pieces.append(piece)
            taken += len(piece)
        if max(size, taken) > most:
            raise OSError(errno.EFBIG, too_large(max(size, taken), most), str(path))
        return b"".join(pieces)


def digest_of(file: Path, name: bytes = b"") -> str:
    """Return the SHA-256 of ``name`` and a plain file's content; OSError where it is none."""
    digest = hashlib.sha256(name)
    with open_plain(file) as opened:
        while piece := opened.read(_PIECE_BYTES):
            digest.update(piece)
    return digest.hexdigest()


def named_digest(file: Path, folder: Path) -> str:
    """Return the digest of a file's content, and of its path as seen from the real path of a ``folder``."""
    return digest_of(file, name_in_digest(os.path.relpath(file, folder)))


def is_named_digest(digest: str, name: str, content: bytes) -> bool:
    """Return whether ``named_digest`` of a file with this path, as seen from the folder, and this content is so."""
    return hashlib.sha256(name_in_digest(name) + content).hexdigest() == digest


def name_in_digest(name: str) -> bytes:
    """Return what stands for a file's path before its content in ``named_digest``."""
    return os.fsencode(name) + b"\0"


def read_head(path: Path, most: int, in_place: bool = False) -> tuple[bytes, int]:
    """Return at most so many bytes from the beginning of a plain file, and its size; OSError where it is none."""
    with open_plain(path, in_place) as file:
        data = file.read(most)
        return data, max(os.fstat(file.fileno()).st_size, len(data) + len(file.read(1)))


def open_plain(path: Path, in_place: bool = False) -> BinaryIO:
    """Open a plain file; OSError for a pipe, which would keep us waiting, and for a device, which may act on it.

    One that keeps its reader waiting nevertheless, as some of /proc, is opened, and reading it raises OSError.
    With ``in_place`` the path must be the real one, which a candidate that owns its folders may make a link to
    somewhere else at any time.
    """
    place = os.open(path, os.O_PATH | os.O_CLOEXEC)  # nothing learns that it was looked at
    try:
        mode, reason = os.fstat(place).st_mode, ""
        if stat.S_ISDIR(mode):
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(mode):
            reason = "it is not a plain file"
        elif in_place and os.readlink(f"/proc/self/fd/{place}") != str(path):
            reason = "it became a link to another file"
        if reason:
            raise OSError(errno.EINVAL, reason, str(path))
        try:
            flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
            return io.BufferedReader(_Unwaiting(os.open(f"/proc/self/fd/{place}", flags)))
        except OSError as error:
            raise OSError(error.errno, os.strerror(error.errno), str(path)) from None
    finally:
        os.close(place)


class _Unwaiting(io.FileIO):
    """A file whose reads raise OSError where they would wait: to its reader a None looks like the end."""

    def readinto(self, buffer) -> int:
        if (count := super().readinto(buffer)) is None:
            raise BlockingIOError(errno.EAGAIN, "it keeps its reader waiting")
        return count


def too_large(size: int, cap: int) -> str:
    """Return why a file is not read."""
    return f"it is too large: {size:,} bytes, and the limit is {cap:,}"
