"""The cache of built artefacts: one entry per key, a hash of everything that decides the artefact.

An entry is a folder of files that never change, with a manifest of their
digests, and of those of the system's files that they were made of. It is made
elsewhere on the same file system and moved into place in one step, so that
processes on one or on many hosts can share a cache: the second of two equal
builds is thrown away. Digests are checked at every use, and an entry that does
not match its manifest is removed.

Only trusted processes write here. What a candidate's process gets to load is a
copy, and a cache that it found and damaged is noticed; keeping it from finding
one is for the sandbox around it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from harness.faults import MachineFault
from harness.json_text import parse_json
from harness.limits import MAX_BUILT_BYTES
from harness.process.deadline import take_lock
from harness.process.owned_folders import disk_use, make_folder, remove_tree, remove_unheld, sweep
from harness.process.worker_limits import MAX_FILES, free_bytes
from harness.solution.includes import digest_of, open_plain

DEFAULT_GB = 10.0

_MANIFEST = "manifest.json"
_USES = "uses"  # a byte for every use: its size counts them, its mtime is the last one
_ENTRIES, _PRIVATE, _WORK, _LOCKS, _MARKS = "entries", "private", "work", "locks", "marks"
_TRIMMED = "trimmed"  # whose mtime is when
_IN_USE_S = 10  # what was used so lately may be about to be loaded; who waits longer is built again
_EMPTY_S = 3600  # a folder that somebody may be about to fill
_ABANDONED_S = 24 * 3600
_FORGOTTEN_S = 30 * 24 * 3600  # a mark that nobody renewed
_TRIM_S = 60  # from one to the next
_LEAST_FILE_BYTES = 64 << 10  # of a candidate's own files, however small: to count them takes 10 us each
_LEAST_SHARE_BYTES = 64 << 20  # several times the largest extension in use
_SHORT_BYTES = 8 * _LEAST_SHARE_BYTES  # where less is free room is made at once


class CacheError(MachineFault):
    """The cache cannot be used; the message says what to do."""


@dataclass(frozen=True)
class Statistics:
    """Content of a cache. ``uses`` are builds that the entries of today have saved."""

    root: Path
    entries: int
    size_bytes: int
    limit_bytes: int
    uses: int


def cache_root() -> Path:
    """$KERNELBENCH_CACHE, else kernelbench/ in the user's cache folder."""
    if configured := os.environ.get("KERNELBENCH_CACHE"):
        return Path(os.path.abspath(configured))
    user = Path(os.environ.get("XDG_CACHE_HOME", ""))  # a relative one is to be ignored, as its standard says
    return (user if user.is_absolute() else Path.home() / ".cache") / "kernelbench"


def limit_bytes() -> int:
    """$KERNELBENCH_CACHE_GB, else 10 GB: what the cache shrinks to, oldest use first."""
    configured = os.environ.get("KERNELBENCH_CACHE_GB", "")
    try:
        return int(float(configured or DEFAULT_GB) * 1e9)
    except (ValueError, OverflowError):
        raise CacheError(f"KERNELBENCH_CACHE_GB is {configured!r}, not a number of gigabytes") from None


def built_bytes(path: Path, most: int = MAX_BUILT_BYTES) -> int:
    """Return the size of what a build made, by its real path; ValueError, with the reason, where it is no library."""
    if not os.path.lexists(path):
        raise ValueError(f"the build left no {path.name}")
    try:
        with open_plain(path, in_place=True) as file:
            size = os.fstat(file.fileno()).st_size
    except OSError:
        raise ValueError(f"the build left no plain file {path.name}") from None
    most = min(most, MAX_BUILT_BYTES)
    if size > most:
        raise ValueError(f"{path.name} has {size:,} bytes; the limit is {most:,}")
    return size


def key_of(*parts: str) -> str:
    """Return the cache key of these parts, 40 hexadecimal digits of a SHA-256."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:40]


class Cache:
    """The cache in ``root``; raises CacheError where it cannot be written."""

    def __init__(self, root: Path | None = None):
        self.root = root or cache_root()
        with self._writing():
            for name in (_ENTRIES, _PRIVATE, _WORK, _LOCKS, _MARKS):
                (self.root / name).mkdir(parents=True, exist_ok=True, mode=0o700)

    def get(self, key: str) -> Path | None:
        """The folder of an entry; None where its files, or what they were made of, are not what its manifest says."""
        folder = self.path(key)
        if not folder.is_dir():
            return None
        try:
            manifest = parse_json((folder / _MANIFEST).read_text())
            parts = [*manifest["files"].items(), *manifest.get("dependencies", {}).items()]
            sound = all(digest_of(folder / name) == digest for name, digest in parts)
        except (OSError, ValueError, LookupError, TypeError):
            sound = False
        if not sound:
            self._remove(folder)
            return None
        with contextlib.suppress(OSError), open(folder / _USES, "ab") as uses:  # a full disk does not stop a reader
            uses.write(b".")
        return folder

    def renew(self, key: str) -> bool:
        """Return whether there is an entry, which is about to be used."""
        try:
            os.utime(self.path(key) / _USES)
        except OSError:
            return False
        return True

    def put(self, key: str, files: list[Path], dependencies: dict[str, str] | None = None) -> Path:
        """Copy ``files`` into a new entry and return its folder, or the folder of the first.

        Only plain files: a link that a build left in a file's place is refused.
        ``dependencies`` are absolute paths and digests of what must not change.
        """
        folder = self.path(key)
        self._trim_now_and_then()  # before it writes: the disk may be full
        with self._writing(), self.work_folder() as work:
            digests = {}
            for file in files:
                copy = work / "entry" / file.name
                copy.parent.mkdir(exist_ok=True)
                _copy_plain_file(file, copy)
                digests[file.name] = digest_of(copy)
            size = sum((work / "entry" / name).stat().st_size for name in digests)
            manifest = {"files": digests, "bytes": size, "dependencies": dependencies or {}}
            (work / "entry" / _MANIFEST).write_text(json.dumps(manifest))
            (work / "entry" / _USES).touch()
            folder.parent.mkdir(exist_ok=True)
            try:
                os.rename(work / "entry", folder)
            except OSError:
                if not folder.is_dir():  # not beaten to it: a real error
                    raise
        return folder

    def contents(self, key: str) -> dict[str, bytes] | None:
        """An entry as it travels to a host that shares no file system; None where there is none."""
        folder = self.get(key)
        if folder is None:
            return None
        names = parse_json((folder / _MANIFEST).read_text())["files"]
        return {name: (folder / name).read_bytes() for name in (*names, _MANIFEST)}

    def add(self, key: str, contents: dict[str, bytes]) -> None:
        """Take in the ``contents`` of an entry of another host's cache, unless it is here already.

        Where this host's files are not those that it was made of, the next ``get`` removes it.
        """
        if self.path(key).is_dir():
            return
        with self._writing(), self.work_folder() as work:
            files = {name: data for name, data in contents.items() if name != _MANIFEST}
            for name, data in files.items():
                (work / name).write_bytes(data)
            dependencies = parse_json(contents.get(_MANIFEST, "{}")).get("dependencies")
            self.put(key, [work / name for name in files], dependencies)

    def private_folder(self, key: str) -> Path:
        """A folder that the processes of one candidate fill as they like, and that no other reads."""
        self._trim_now_and_then()
        folder = self.root / _PRIVATE / key
        with self._writing():
            folder.mkdir(mode=0o700, exist_ok=True)
            os.utime(folder)
        return folder

    @contextlib.contextmanager
    def building(self, key: str) -> Iterator[None]:
        """Hold this while building ``key``, so that on one host nobody builds it twice; no file is left of it."""
        path = self.root / _LOCKS / key
        with self._writing():
            lock = self._locked(path)
        with lock:
            try:
                yield
            finally:
                path.unlink(missing_ok=True)

    def _locked(self, path: Path) -> TextIO:
        """Return the file at ``path``, locked; whoever held it before has removed another."""
        while True:
            with contextlib.ExitStack() as opened:
                lock = opened.enter_context(open(path, "w", encoding="utf-8"))
                take_lock(lock.fileno(), f"the lock {path}, which is another build's of the same source,")
                with contextlib.suppress(FileNotFoundError):
                    if os.path.samestat(os.fstat(lock.fileno()), os.stat(path)):
                        opened.pop_all()
                        return lock

    def mark(self, key: str) -> None:
        """Leave a hint for ``is_marked``: empty, shared, and gone after some weeks without use."""
        with self._writing():
            (self.root / _MARKS / key).touch()

    def is_marked(self, key: str) -> bool:
        return (self.root / _MARKS / key).exists()

    def trim(self, limit: int | None = None) -> None:
        """Remove what was not used for longest, until the rest fits; what was waiting for its evaluation is made again.

        Without a ``limit`` the rest may have no more than the user's, nor than it leaves free.
        """
        entries = sorted(self._entries())
        size = sum(size for _, size, _, _ in entries)
        if limit is None:
            limit = min(limit_bytes(), (size + free_bytes(self.root)) // 2)
        for last_use, entry_size, _, folder in entries:
            if size <= limit:
                break
            if folder.parent.name == _PRIVATE:
                removed = remove_unheld(folder)
            elif removed := time.time() - last_use >= _IN_USE_S:
                self._remove(folder)
            size -= entry_size if removed else 0
        for name, age_s in ((_WORK, _ABANDONED_S), (_LOCKS, _ABANDONED_S), (_MARKS, _FORGOTTEN_S)):
            for leftover in (self.root / name).iterdir():
                with contextlib.suppress(OSError):
                    if time.time() - leftover.stat().st_mtime > age_s:
                        remove_tree(leftover) if leftover.is_dir() else leftover.unlink()

    def _trim_now_and_then(self) -> None:
        stamp = self.root / _TRIMMED
        with contextlib.suppress(OSError):
            if not stamp.exists() or abs(time.time() - stamp.stat().st_mtime) > _TRIM_S:
                stamp.touch()
                self.trim()

    def sweep(self) -> None:
        """Remove what killed processes left: work of builds, folders of entries that never came, too large ones."""
        sweep(self.root / _WORK)
        for folder in (self.root / _PRIVATE).iterdir():
            remove_unheld(folder, overgrown=True)
        for folder in (*(self.root / _ENTRIES).iterdir(), *(self.root / _PRIVATE).iterdir()):
            with contextlib.suppress(OSError):  # one that is not empty stays
                if time.time() - folder.stat().st_mtime > _EMPTY_S:
                    folder.rmdir()

    def clear(self) -> Statistics:
        """Remove everything; returns what was there."""
        before = self.statistics()
        for _, _, _, folder in self._entries():
            self._remove(folder)
        for mark in (self.root / _MARKS).iterdir():
            mark.unlink(missing_ok=True)
        return before

    def share_bytes(self) -> int:
        """Return what one candidate may add: an eighth of what is free, which leaves the next ones room.

        Half of a small disk may be a candidate's own files, and a library lies in its build's as well.
        """
        with self._writing():
            if free_bytes(self.root) < _SHORT_BYTES:
                self.trim()
            free = free_bytes(self.root)
            return max(min(_LEAST_SHARE_BYTES, free // 4), free // 8)

    def statistics(self) -> Statistics:
        entries = list(self._entries())
        sizes, uses = sum(entry[1] for entry in entries), sum(entry[2] for entry in entries)
        return Statistics(self.root, len(entries), sizes, limit_bytes(), uses)

    def _entries(self) -> Iterator[tuple[float, int, int, Path]]:
        """(last use, bytes, uses, folder) of every entry."""
        for folder in (self.root / _ENTRIES).glob("*/*"):
            with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
                uses = (folder / _USES).stat()
                yield uses.st_mtime, parse_json((folder / _MANIFEST).read_text())["bytes"], uses.st_size, folder
        for folder in (self.root / _PRIVATE).iterdir():
            with contextlib.suppress(OSError):
                used = folder.stat().st_mtime
                used = used if used <= time.time() else 0.0  # its candidate says when
                use = disk_use(folder, most=MAX_FILES)
                yield used, max(use.bytes, use.files * _LEAST_FILE_BYTES), 0, folder

    def path(self, key: str) -> Path:
        """Return where the entry is, if there is one."""
        return self.root / _ENTRIES / key[:2] / key

    def _remove(self, folder: Path) -> None:
        """Remove an entry in one step; a reader that has it open keeps what it has."""
        with contextlib.suppress(OSError), self.work_folder() as work:
            os.rename(folder, work / "removed")

    @contextlib.contextmanager
    def work_folder(self) -> Iterator[Path]:
        """A folder on the cache's file system, which goes at the end; other processes leave it alone."""
        work, lock = make_folder(self.root / _WORK)
        try:
            yield work
        finally:
            remove_tree(work)
            os.close(lock)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise CacheError(
                f"cannot write the build cache in {self.root}: {error.strerror or error}; "
                "make room (`kb cache clear`), or set KERNELBENCH_CACHE to another folder"
            ) from error


def _copy_plain_file(source: Path, target: Path) -> None:
    """``source`` is the real path: its folder is that of a process which a compiler's plugin may have run in."""
    with open_plain(source, in_place=True) as file, open(target, "xb") as copy:
        shutil.copyfileobj(file, copy)
