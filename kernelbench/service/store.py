"""The queue on disk: a submission that was accepted is there until it has exactly one answer, whatever ends.

One SQLite file with a write-ahead log; each change is on the disk before it is confirmed. The sources and records
that wait are there and not in memory.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kernelbench.service.submission import Submission

QUEUE = "queue.sqlite"
MAX_TRIES = 3  # starts of one evaluation; the service or its machine ended in all of them
KEEP_S = 24 * 3600.0  # an answer that nobody has fetched meanwhile is for nobody
QUEUED, RUNNING, DONE = "queued", "running", "done"
MOST_BYTES = 2 << 30  # of jobs, and of answers, or a quarter of what there is room for; one with a full log has 0.2 MB
_RESERVE_BYTES = 16 << 20  # given back where the disk is full: what is removed is logged first
_IN_A_ROW = 64  # of one group before another one has its turn; a change of judges takes seconds
_AT_ONCE = 100  # answers that are removed in one step; between two steps others have the queue
_BETWEEN_S = 0.001  # two steps: who waits for a lock does not get it where it is taken again at once
_PAGES_AT_ONCE = 4096  # that are given back in one step: 16 MiB
_SCHEMA = """
CREATE TABLE IF NOT EXISTS submissions (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, client TEXT NOT NULL, id TEXT NOT NULL, priority INTEGER NOT NULL,
    "group" TEXT NOT NULL, state TEXT NOT NULL, tries INTEGER NOT NULL DEFAULT 0, job TEXT NOT NULL, answer TEXT,
    accepted REAL NOT NULL, ended REAL, UNIQUE (client, id));
CREATE INDEX IF NOT EXISTS waiting ON submissions (state, priority DESC, seq);
CREATE INDEX IF NOT EXISTS done ON submissions (state, client, ended);
"""  # an answer is bytes, whose length SQLite knows without reading them; behind it in its row is what that index has
_GIVEN_UP = f"the service or its machine ended {MAX_TRIES} times during this evaluation"


class StoreError(Exception):
    """A folder that cannot hold the queue; the message says what to do."""


class Full(Exception):
    """The queue holds as much as it may."""


class Store:
    """The queue in ``folder``; one process has it at a time. Methods may be called from several threads."""

    def __init__(self, folder: Path, most: int):
        self._lock, self._most = threading.Lock(), most
        self._group, self._row = "", 0  # what ran last, and how many of it in a row
        self._of_jobs = 0  # bytes of what waits or runs
        if links := [str(path) for path in sorted(folder.iterdir()) if path.is_symlink() and path.name != "tokens"]:
            raise StoreError(f"{links[0]} is a link; choose another folder")
        try:
            self._owner = open(os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), encoding="utf-8")
            fcntl.flock(self._owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._database = sqlite3.connect(folder / QUEUE, check_same_thread=False, isolation_level=None)
            # the first one holds for a file without content, and the second one writes it
            for pragma in ("auto_vacuum = INCREMENTAL", "journal_mode = WAL", "synchronous = FULL"):
                self._database.execute(f"PRAGMA {pragma}")
            if not self._pragma("auto_vacuum"):  # a file of an earlier version keeps all the room that it has had
                with contextlib.suppress(sqlite3.OperationalError):  # there may be no room for it now
                    self._database.execute("VACUUM")
            self._database.executescript(_SCHEMA)
            self._folder, self._most_bytes = folder, self._bytes()  # what is there stays, also where the disk is full
            self._reserve = folder / "reserve"
            self._keep_reserve()
        except BlockingIOError:
            raise StoreError(f"another service has {folder}; choose another folder") from None
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"{folder} cannot hold the queue: {error}") from error
        self._resume()

    def _resume(self) -> None:
        """Queue again what ran when the service ended; answer what did so too often."""
        with self._change() as database:
            given_up = json.dumps({"unevaluated": _GIVEN_UP}).encode()
            database.execute(
                "UPDATE submissions SET state = ?, answer = ?, ended = ?, job = '' WHERE state = ? AND tries >= ?",
                (DONE, given_up, time.time(), RUNNING, MAX_TRIES),
            )
            database.execute("UPDATE submissions SET state = ? WHERE state = ?", (QUEUED, RUNNING))
            self._of_jobs = database.execute("SELECT COALESCE(SUM(LENGTH(job)), 0) FROM submissions").fetchone()[0]

    def add(self, submission: Submission) -> bool:
        """Accept a submission; return False where it was accepted before.

        Raises Full, and OperationalError where the disk would not have room for it in an empty queue either.
        """
        job = json.dumps(submission.job)
        with self._change() as database:
            key = (submission.client, submission.id)
            if database.execute("SELECT 1 FROM submissions WHERE client = ? AND id = ?", key).fetchone():
                return False
            if len(job) > (limit := self._limit()):
                raise sqlite3.OperationalError(f"its disk has no room for a submission of {len(job):,} bytes")
            if sum(self._counts().values()) >= self._most or self._of_jobs + len(job) > limit:
                raise Full
            database.execute(
                'INSERT INTO submissions (client, id, priority, "group", state, job, accepted) VALUES (?,?,?,?,?,?,?)',
                (*key, submission.priority, submission.group, QUEUED, job, time.time()),
            )
            self._of_jobs += len(job)
            return True

    def take(self) -> tuple[int, dict[str, Any], float] | None:
        """Return the number, the job and the waiting time in s of what is to run next; None where nothing is.

        The highest priority first, then the oldest. Another group waits until nothing of the last one runs.
        """
        with self._change() as database:
            query = 'SELECT seq, "group", job, accepted FROM submissions WHERE state = ? '
            order = "ORDER BY priority DESC, seq LIMIT 1"
            first = database.execute(f"{query} {order}", (QUEUED,)).fetchone()
            if first is None:
                return None
            if first[1] != self._group and self._counts().get(RUNNING):
                top = "AND priority = (SELECT MAX(priority) FROM submissions WHERE state = ?)"
                same = (QUEUED, self._group, QUEUED)
                found = database.execute(f'{query} AND "group" = ? {top} {order}', same).fetchone()
                first = found if self._row < _IN_A_ROW else None
                if first is None:
                    return None
            seq, group, job, accepted = first
            self._row = self._row + 1 if group == self._group else 1
            self._group = group
            database.execute("UPDATE submissions SET state = ?, tries = tries + 1 WHERE seq = ?", (RUNNING, seq))
            return seq, json.loads(job), time.time() - accepted

    def put_back(self, seq: int) -> bool:
        """Queue again what runs; return False where it has been tried often enough."""
        with self._change() as database:
            changed = database.execute(
                "UPDATE submissions SET state = ? WHERE seq = ? AND state = ? AND tries < ?",
                (QUEUED, seq, RUNNING, MAX_TRIES),
            )
            return changed.rowcount > 0

    def answer(self, seq: int, answer: dict[str, Any]) -> tuple[str, str]:
        """Store the answer of what runs, once; return its client and id."""
        with self._change() as database:
            query = "SELECT client, id, LENGTH(job) FROM submissions WHERE seq = ?"
            client, name, job = database.execute(query, (seq,)).fetchone()
            # what the job was is not needed any more
            changed = database.execute(
                "UPDATE submissions SET state = ?, answer = ?, ended = ?, job = '' WHERE seq = ? AND state = ?",
                (DONE, json.dumps(answer).encode(), time.time(), seq, RUNNING),
            )
            self._of_jobs -= job * changed.rowcount
            return client, name

    def answers(self, client: str, ids: Sequence[str], most: int) -> tuple[dict[str, Any], list[str], list[str]]:
        """Return up to ``most`` answers by id, the ids that still wait, and those that this client never sent."""
        marks = ",".join("?" * len(ids))
        query = f"SELECT id, state FROM submissions WHERE client = ? AND id IN ({marks})"
        with self._lock:
            states = dict(self._database.execute(query, (client, *ids)))
            ready = [name for name in ids if states.get(name) == DONE][:most]
            query = f"SELECT id, answer FROM submissions WHERE client = ? AND id IN ({','.join('?' * len(ready))})"
            found = {name: json.loads(text) for name, text in self._database.execute(query, (client, *ready))}
        waiting = [name for name in ids if name in states and name not in found]
        return found, waiting, [name for name in ids if name not in states]

    def counts(self) -> dict[str, int]:
        """Return how many submissions are queued and how many run."""
        with self._lock:
            return {QUEUED: 0, RUNNING: 0} | self._counts()

    def _counts(self) -> dict[str, int]:
        query = "SELECT state, COUNT(*) FROM submissions WHERE state IN (?, ?) GROUP BY state"
        return dict(self._database.execute(query, (QUEUED, RUNNING)))

    def forget_old(self, now: float | None = None) -> None:
        """Remove answers that are older than a day, or too many, and give their room back.

        Of too many the oldest go, of the client who has most. Where the disk is full there is a reserve for this.
        """
        limit = (now or time.time()) - KEEP_S
        try:
            self._forget(limit)
        except sqlite3.OperationalError:
            self._reserve.unlink(missing_ok=True)
            self._forget(limit)
        self._keep_reserve()

    def _forget(self, limit: float) -> None:
        while self._forget_some(limit) or self._give_back_some():
            time.sleep(_BETWEEN_S)

    def _forget_some(self, limit: float) -> bool:
        """Remove some answers from before ``limit``, or else of too many; return False where there are none."""
        with self._change() as database:
            old = "SELECT seq FROM submissions WHERE state = ? AND ended < ? LIMIT ?"
            found = database.execute(f"DELETE FROM submissions WHERE seq IN ({old})", (DONE, limit, _AT_ONCE))
            if found.rowcount:
                return True
            over = self._bytes() - self._of_jobs - self._limit()
            return over > 0 and self._forget_of_largest(over)

    def _give_back_some(self) -> bool:
        """Give some free pages back; return whether there are more."""
        with self._lock:
            free = self._pragma("freelist_count")
            # `execute` would end it after one page
            self._database.executescript(f"PRAGMA incremental_vacuum({_PAGES_AT_ONCE})")
            self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            return 0 < self._pragma("freelist_count") < free

    def _limit(self) -> int:
        """Return how many bytes jobs, and answers, may have now: more where room has come, but never less.

        A disk that others fill would cost answers that nobody has fetched.
        """
        disk = os.statvfs(self._folder)
        self._most_bytes = max(self._most_bytes, (disk.f_bavail * disk.f_frsize + self._bytes()) // 4)
        return min(MOST_BYTES, self._most_bytes)

    def _bytes(self) -> int:
        return (self._pragma("page_count") - self._pragma("freelist_count")) * self._pragma("page_size")

    def _pragma(self, name: str) -> int:
        return self._database.execute(f"PRAGMA {name}").fetchone()[0]

    def _forget_of_largest(self, over: int) -> bool:
        """Remove answers of the client whose answers are largest together, the oldest first, until ``over`` bytes go.

        They are some at most; return False where there are none.
        """
        largest = (
            "SELECT client FROM submissions WHERE state = ? GROUP BY client ORDER BY SUM(LENGTH(answer)) DESC LIMIT 1"
        )
        query = f"SELECT seq, LENGTH(answer) FROM submissions WHERE state = ? AND client = ({largest}) ORDER BY ended"
        oldest = self._database.execute(f"{query} LIMIT {_AT_ONCE}", (DONE, DONE)).fetchall()
        for seq, length in oldest:
            if over > 0:
                self._database.execute("DELETE FROM submissions WHERE seq = ?", (seq,))
                over -= length
        return bool(oldest)

    def _keep_reserve(self) -> None:
        with contextlib.suppress(OSError), open(self._reserve, "ab") as file:  # there may be no room now
            os.posix_fallocate(file.fileno(), 0, _RESERVE_BYTES)

    def close(self) -> None:
        """Close the file; what runs is queued again by the next one who opens it."""
        with self._lock:
            self._database.close()
            self._owner.close()

    @contextlib.contextmanager
    def _change(self) -> Iterator[sqlite3.Connection]:
        """One change, on the disk as a whole or not at all."""
        with self._lock:
            self._database.execute("BEGIN IMMEDIATE")
            of_jobs = self._of_jobs
            try:
                yield self._database
                self._database.execute("COMMIT")
            except BaseException:
                self._of_jobs = of_jobs
                if self._database.in_transaction:  # a full disk has ended it
                    self._database.execute("ROLLBACK")
                raise
