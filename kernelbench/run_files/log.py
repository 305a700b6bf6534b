"""Append-only logs and whole files of a run, and what goes wrong with them."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from harness.faults import MachineFault
from kernelbench.run_files.folder import (
    MOST_LINES,
    is_whole,
    must_have_one_name,
    read_lines,
    run_left_by_a_link,
)

MOST_LOG_BYTES = 2 << 30  # chosen: 100,000 records of 20 kB
_PIECE_BYTES, _LONGEST_BYTES = 1 << 20, 64 << 20  # of a log that is read from its end, and of its last line
# Bytes and lines of each log that this process wrote to: a log is not read again for each record.
_counted: dict[tuple[int, int], tuple[int, int]] = {}
_LINK = "it is a link, which is not written through"


class RunError(Exception):
    """A run directory that cannot be used, and what to do about it."""


class WriteError(RunError, MachineFault):
    """The run directory cannot be written: no room, no permission."""


class FullLog(WriteError):
    """A log of the run has as much as is read of one."""


def begin(path: Path) -> None:
    """Make an empty log where there is none; raises OSError, also for a link, which is not followed."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666))


def append_line(path: Path, record: dict[str, Any]) -> None:
    """Add one record to a log, whole and on the disk; WriteError where there is no room, and the log is as before.

    A half-written line at its end is cut off, and not before: who only reads a file, and refuses it, changes nothing.
    A whole one gets the end that it lacks.
    Nor does a log grow beyond what is read of one, in bytes or lines. A link is refused: in a run directory of others
    it may lead to any file of ours. Of two processes one waits; threads of one must not call it at once for one log.
    """
    line = (json.dumps(record) + "\n").encode()
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        reason = _LINK if error.errno == errno.ELOOP else error.strerror
        raise WriteError(f"cannot open {path}: {reason}; put it right and continue with --resume") from error
    try:
        _check_names(descriptor, path)
        wait_for_others(descriptor)
        size, missing = end_of_lines(descriptor)
        line = missing + line
        if size + len(line) > MOST_LOG_BYTES:
            raise FullLog(
                f"{path} is full: it has {size:,} bytes, and no more than {MOST_LOG_BYTES:,} are read of a log. "
                "Everything up to here is kept; go on in another directory"
            )
        lines = lines_of(descriptor) + len(missing)
        if lines >= MOST_LINES:
            raise FullLog(f"{path} is full: it has {lines:,} lines, and no more are read. Go on in another directory")
        try:
            if size < os.fstat(descriptor).st_size:
                os.ftruncate(descriptor, size)
            written = os.write(descriptor, line)
            if written < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(descriptor)
            _counted[_identity(descriptor)] = (size + len(line), lines + 1)
        except OSError as error:
            with contextlib.suppress(OSError):  # EINVAL: it is a pipe
                os.ftruncate(descriptor, size)
            raise WriteError(
                f"cannot write {path}: {error.strerror}. Everything up to here is kept; "
                "make room and continue with --resume"
            ) from error
    finally:
        os.close(descriptor)


def wait_for_others(descriptor: int) -> None:
    """Have an open log to oneself until it is closed: what another process of ``kb`` adds meanwhile would be cut off.

    Only who may write it can hold this lock, which is another than the one that a run's only writer has.
    """
    with contextlib.suppress(OSError):  # a file system without locks
        fcntl.lockf(descriptor, fcntl.LOCK_EX)


def end_of_lines(descriptor: int) -> tuple[int, bytes]:
    """Return how many bytes the whole lines of an open log have, and the end that the last of them lacks, or b""."""
    size = end = os.fstat(descriptor).st_size
    if not size or os.pread(descriptor, 1, size - 1) == b"\n":
        return size, b""
    while end:
        begin = max(0, end - _PIECE_BYTES)
        if (at := os.pread(descriptor, end - begin, begin).rfind(b"\n")) >= 0:
            end = begin + at + 1
            break
        end = begin
    is_one = size - end <= _LONGEST_BYTES and is_whole(os.pread(descriptor, size - end, end))
    return (size, b"\n") if is_one else (end, b"")


def _check_names(descriptor: int, path: Path) -> None:
    try:
        must_have_one_name(descriptor)
    except OSError as error:
        raise WriteError(f"cannot write {path}: {error.strerror}, and continue with --resume") from None


def _identity(descriptor: int) -> tuple[int, int]:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


def lines_of(descriptor: int) -> int:
    """Return how many lines an open log has. It is read only where it has another size than when it was counted."""
    size = os.fstat(descriptor).st_size
    known = _counted.get(_identity(descriptor))
    if known and known[0] == size:
        return known[1]
    pieces = (os.pread(descriptor, _PIECE_BYTES, place) for place in range(0, size, _PIECE_BYTES))
    return sum(piece.count(b"\n") for piece in pieces)


def write_named(path: Path, content: bytes | str) -> None:
    """``write_whole`` for a file that a person named: a link stays one, and a terminal or a pipe is written to.

    Not so in a run or an experiment, which may be of others: a link there may lead to any file of ours.
    """
    if top := run_left_by_a_link(path):
        below = path.absolute() if path.absolute().is_relative_to(top) else path.parent.resolve() / path.name
        write_below(top, os.path.relpath(below, top), content)
        return
    path = path.resolve()
    if path.exists() and not path.is_file():
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    else:
        write_whole(path, content)


def write_whole(path: Path, content: bytes | str) -> None:
    """A file that is there whole or as it was before, whatever happens meanwhile. Raises OSError that names it.

    A link is replaced: in a run, a suite or a checkout, which may be of others, it may lead to any file of ours.
    """
    write_below(path.parent, path.name, content)


def write_below(folder: Path, name: str, content: bytes | str) -> None:
    """``write_whole`` for a file below a folder: makes the folders between, none of which may be a link.

    Nor may one become a link meanwhile: whoever else may write there would have a file of ours written over.
    """
    content = content.encode() if isinstance(content, str) else content
    *folders, own = Path(name).parts
    try:
        with _opened(folder, folders) as place, _drafted(place, content) as draft:
            os.replace(draft, own, src_dir_fd=place, dst_dir_fd=place)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(folder / name)) from None


def write_new(path: Path, content: bytes) -> None:
    """``write_whole`` for a file that is not there yet: of two who write it one does. Raises FileExistsError."""
    with _opened(path.parent, []) as place, _drafted(place, content) as draft:
        try:
            os.link(draft, path.name, src_dir_fd=place, dst_dir_fd=place)
        except FileExistsError:
            raise
        except OSError:  # a file system without second names, where two at once are not told apart
            os.replace(draft, path.name, src_dir_fd=place, dst_dir_fd=place)


def write_all_new(folder: Path, files: Mapping[str, str]) -> None:
    """``write_new`` for files of a folder, which is made, one after the other; where one fails none of them stays."""
    is_new, made = not folder.exists(), []
    folder.mkdir(parents=True, exist_ok=True)
    try:
        for name, text in files.items():
            write_new(folder / name, text.encode())
            made.append(folder / name)
    except BaseException:  # an interruption too
        for path in made:
            path.unlink(missing_ok=True)
        if is_new:
            with contextlib.suppress(OSError):
                folder.rmdir()
        raise


@contextlib.contextmanager
def _opened(folder: Path, inner: list[str]) -> Iterator[int]:
    """Give a descriptor of the folder below ``folder``, made with those on the way; a link in its place is refused."""
    place = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in inner:
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, dir_fd=place)
            outer = place
            place = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=outer)
            os.close(outer)
        yield place
    finally:
        os.close(place)


@contextlib.contextmanager
def _drafted(place: int, content: bytes) -> Iterator[str]:
    """Give the name of a file with the content in an open folder, which goes if it does not take another's place."""
    draft = f".draft-{secrets.token_hex(8)}"  # which nothing has: no link, no file of the user's
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        with open(os.open(draft, flags, 0o666, dir_fd=place), "wb") as file:
            file.write(content)
        yield draft
    finally:
        with contextlib.suppress(OSError):
            os.unlink(draft, dir_fd=place)


def whole_lines(path: Path) -> tuple[list[bytes], bool]:
    """The lines of a log, and whether a half-written one at its end was left out, which ``append_line`` cuts off.

    Raises OSError for a link, for what is no plain file, and for one that is too large to be a log.
    """
    lines, torn = read_lines(path, MOST_LOG_BYTES)
    return lines, bool(torn)


def lines_if_any(path: Path) -> list[bytes]:
    """Return the whole lines of a log; none where there is no such file. Raises RunError where it cannot be read."""
    try:
        return whole_lines(path)[0]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror}") from None
