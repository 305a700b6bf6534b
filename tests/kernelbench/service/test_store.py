"""The queue on disk: order, back-pressure, one answer each, and what a service that was killed leaves."""

import os
import sqlite3
import threading
import time
from types import SimpleNamespace

import pytest

from kernelbench.service.store import KEEP_S, MAX_TRIES, Full, Store, StoreError
from kernelbench.service.submission import Submission


@pytest.fixture
def store(tmp_path):
    opened = Store(tmp_path, most=100)
    yield opened
    opened.close()


def submission(name, priority=0, group="g", client="c"):
    return Submission(f"{name:032x}", client, priority, group, {"name": name})


def taken(store):
    found = store.take()
    return found and found[1]["name"]


def answers(store, *names, client="c"):
    return store.answers(client, [f"{name:032x}" for name in names], 10)


def test_the_highest_priority_goes_first_and_then_the_oldest(store):
    for name, priority in ((1, 0), (2, 5), (3, 5), (4, 9)):
        assert store.add(submission(name, priority))
    assert [taken(store) for _ in range(5)] == [4, 2, 3, 1, None]


def test_a_submission_that_comes_twice_is_accepted_once_and_answered_once(store):
    assert store.add(submission(1)) and not store.add(submission(1))
    seq, _, _ = store.take()
    assert not store.add(submission(1)) and taken(store) is None
    assert store.answer(seq, {"first": 1}) == ("c", f"{1:032x}")
    store.answer(seq, {"second": 1})
    assert answers(store, 1) == ({f"{1:032x}": {"first": 1}}, [], [])
    assert not store.add(submission(1)) and taken(store) is None


def test_clients_see_their_own_submissions_only(store):
    store.add(submission(1, client="a"))
    store.answer(store.take()[0], {"of": "a"})
    assert answers(store, 1, client="b") == ({}, [], [f"{1:032x}"])
    assert store.add(submission(1, client="b"))
    assert answers(store, 1, client="b") == ({}, [f"{1:032x}"], [])
    assert answers(store, 1, client="a")[0] == {f"{1:032x}": {"of": "a"}}


def test_another_group_waits_until_nothing_of_the_last_one_runs(store):
    for name, group in ((1, "a"), (2, "b"), (3, "a")):
        store.add(submission(name, group=group))
    first = store.take()[0]
    assert taken(store) == 3 and taken(store) is None  # 2 would need another judge beside this one
    store.answer(first, {})
    assert taken(store) is None
    store.answer(3, {})
    assert taken(store) == 2


def test_a_group_cannot_keep_others_out_for_ever(tmp_path):
    store = Store(tmp_path, most=1000)
    for name in range(200):
        store.add(submission(name, group="b" if name == 1 else "a"))
    order, running = [], []
    while len(order) < 200:
        if found := store.take():
            order.append(found[1]["name"])
            running.append(found[0])
        if len(running) == 3 or not found:
            store.answer(running.pop(0), {})
    store.close()
    assert order.index(1) < 70


def test_a_full_queue_takes_no_more_until_something_is_answered(tmp_path):
    store = Store(tmp_path, most=2)
    store.add(submission(1))
    store.add(submission(2))
    with pytest.raises(Full):
        store.add(submission(3))
    assert not store.add(submission(2))
    store.answer(store.take()[0], {})
    assert store.add(submission(3))
    assert store.counts() == {"queued": 2, "running": 0}
    store.close()


def test_what_ran_when_the_service_was_killed_is_queued_again_and_given_up_in_the_end(tmp_path):
    store = Store(tmp_path, most=10)
    store.add(submission(1))
    store.add(submission(2))
    for _ in range(MAX_TRIES):
        assert taken(store) == 1
        store.close()
        store = Store(tmp_path, most=10)
    found, waiting, _ = answers(store, 1, 2)
    assert "ended 3 times" in found[f"{1:032x}"]["unevaluated"] and waiting == [f"{2:032x}"]
    assert taken(store) == 2
    store.close()


def test_what_could_not_be_tried_is_put_back_a_few_times(store):
    store.add(submission(1))
    for _ in range(MAX_TRIES - 1):
        assert store.put_back(store.take()[0])
    seq = store.take()[0]
    assert not store.put_back(seq) and store.counts() == {"queued": 0, "running": 1}
    store.answer(seq, {})
    assert not store.put_back(seq) and answers(store, 1)[0]


def test_one_service_has_a_folder_at_a_time(tmp_path, store):
    with pytest.raises(StoreError, match="another service has"):
        Store(tmp_path, most=10)


@pytest.mark.parametrize("name", ["queue.sqlite", "reserve", "lock"])
def test_nothing_is_written_through_a_link(tmp_path, name):
    (tmp_path / "mine").write_text("")
    (tmp_path / "queue").mkdir()
    (tmp_path / "queue" / name).symlink_to(tmp_path / "mine")
    with pytest.raises(StoreError, match=f"{name} is a link; choose another folder"):
        Store(tmp_path / "queue", most=10)
    assert (tmp_path / "mine").read_text() == ""


def test_old_answers_are_forgotten_and_nothing_that_waits(store):
    for name in (1, 2):
        store.add(submission(name))
    store.answer(store.take()[0], {})
    store.forget_old()
    assert answers(store, 1)[0]
    store.forget_old(time.time() + KEEP_S + 1)
    assert answers(store, 1, 2) == ({}, [f"{2:032x}"], [f"{1:032x}"])


def answer(store, name, client, text):
    store.add(submission(name, client=client))
    seq, _, _ = store.take()
    store.answer(seq, {"text": text})


def test_of_too_many_answers_the_oldest_go_of_who_has_most(tmp_path, monkeypatch):
    """One client's answers filled the disk, and nobody was served any more."""
    monkeypatch.setattr("kernelbench.service.store.MOST_BYTES", 2 << 20)
    monkeypatch.setattr("kernelbench.service.store._AT_ONCE", 1)
    store = Store(tmp_path, most=100)
    for name in range(4):
        answer(store, name, "loud", "x" * (1 << 20))
    answer(store, 9, "quiet", "y")
    store.forget_old()
    found, _, unknown = answers(store, 0, 1, 2, 3, client="loud")
    assert [int(name, 16) for name in unknown] == [0, 1, 2] and len(found) == 1
    assert answers(store, 9, client="quiet")[0]
    assert store._bytes() < 2 << 20
    store.close()


@pytest.fixture
def disk(monkeypatch):
    """The room on a disk, to be set."""
    found = SimpleNamespace(f_bavail=0, f_frsize=1)
    monkeypatch.setattr(os, "statvfs", lambda path: found)
    return found


def test_a_start_on_a_full_disk_removes_no_answer(tmp_path, disk):
    """The limit was a quarter of what was there and free, so a start where little was free lost unfetched answers."""
    disk.f_bavail = 100 << 20
    store = Store(tmp_path, most=100)
    for name in range(5):
        answer(store, name, "c", "x" * (1 << 20))
    store.close()
    disk.f_bavail = 0
    store = Store(tmp_path, most=100)
    store.forget_old()
    assert len(answers(store, *range(5))[0]) == 5
    store.close()


@pytest.mark.parametrize("earlier", [False, True])
def test_removed_answers_give_their_room_back(tmp_path, earlier):
    """The file kept its largest size for ever, so that a full disk stayed full."""
    file = tmp_path / "queue.sqlite"
    if earlier:
        with sqlite3.connect(file) as database:
            database.execute("PRAGMA journal_mode = WAL")
        database.close()
    store = Store(tmp_path, most=100)
    for name in range(4):
        answer(store, name, "c", "x" * (1 << 18))
    store.forget_old()
    assert file.stat().st_size > 1 << 20
    store.forget_old(time.time() + KEEP_S + 1)
    assert file.stat().st_size < 1 << 18
    store.close()


def read_bytes():
    with open("/proc/self/io") as file:
        return int(file.readline().split()[1])


def test_removing_a_few_answers_reads_no_others_and_lets_others_have_the_queue(tmp_path, monkeypatch):
    """All answers were read for each hundred that went, in one change: nothing else was served for a minute."""
    monkeypatch.setattr("kernelbench.service.store._AT_ONCE", 1)
    store, changes = Store(tmp_path, most=100), []
    for name in range(40):
        answer(store, name, "c", "x" * (1 << 18))
    monkeypatch.setattr("kernelbench.service.store.MOST_BYTES", store._bytes() - (1 << 19))
    before = read_bytes()
    store._database.set_trace_callback(lambda text: changes.append(text) if text == "COMMIT" else None)
    store.forget_old()
    assert len(answers(store, *range(5))[2]) == 2 and len(changes) == 3
    assert read_bytes() - before < 4 << 20
    store.close()


def test_no_more_answers_are_removed_than_are_too_many(tmp_path, monkeypatch):
    """A hundred went in each step, where one was too many."""
    monkeypatch.setattr("kernelbench.service.store.MOST_BYTES", 2 << 20)
    store = Store(tmp_path, most=100)
    for name in range(5):
        answer(store, name, "c", "x" * (1 << 19))
    store.forget_old()
    assert [int(name, 16) for name in answers(store, *range(5))[2]] == [0, 1]
    store.close()


def test_a_queue_that_began_on_a_full_disk_takes_jobs_when_room_has_come(tmp_path, disk):
    """The limit stayed what it was at the start, and clients were told for ever that an empty queue was full."""
    store, large = Store(tmp_path, most=100), Submission("a" * 32, "c", 0, "g", {"source": "x" * (1 << 20)})
    with pytest.raises(sqlite3.OperationalError, match="no room for a submission of 1,048,"):
        store.add(large)
    disk.f_bavail = 5 << 20
    assert store.add(large)
    with pytest.raises(Full):
        store.add(Submission("b" * 32, "c", 0, "g", large.job))
    store.close()


def test_large_jobs_fill_the_queue_and_push_out_no_answers(tmp_path, monkeypatch):
    """Sources that waited counted as answers: those of one client cost another its answer."""
    monkeypatch.setattr("kernelbench.service.store.MOST_BYTES", 2 << 20)
    store, large = Store(tmp_path, most=100), {"source": "x" * (1 << 19)}
    answer(store, 9, "quiet", "y")
    added = 0
    with pytest.raises(Full):
        for name in range(100):
            store.add(Submission(f"{name:032x}", "loud", 0, "g", large))
            added += 1
    store.forget_old()
    assert added == 3 and answers(store, 9, client="quiet")[0]
    store.close()
    store = Store(tmp_path, most=100)  # another start counts what is there
    with pytest.raises(Full):
        store.add(Submission("a" * 32, "loud", 0, "g", large))
    store.answer(store.take()[0], {})
    assert store.add(Submission("a" * 32, "loud", 0, "g", large))
    store.close()


def test_a_change_that_fails_leaves_the_count_of_bytes(store, monkeypatch):
    class Disk:
        in_transaction = False  # as SQLite ends it where the disk is full

        def __init__(self, database):
            self._database = database

        def execute(self, query, *values):
            if query == "COMMIT":
                self._database.execute("ROLLBACK")
                raise sqlite3.OperationalError("database or disk is full")
            return self._database.execute(query, *values)

    with monkeypatch.context() as context:
        context.setattr(store, "_database", Disk(store._database))
        with pytest.raises(sqlite3.OperationalError, match="disk is full"):
            store.add(submission(1))
    assert store._of_jobs == 0 and store.add(submission(1)) and store._of_jobs > 0


def test_where_the_disk_is_full_there_is_a_reserve_to_remove_what_is_old(store, tmp_path, monkeypatch):
    """Removing needs room first, so that a full disk stayed full when answers were old enough."""
    answer(store, 1, "c", "x")
    reserve, forget = tmp_path / "reserve", store._forget
    assert reserve.stat().st_size == 16 << 20

    def needs_room(limit):
        if reserve.exists():
            raise sqlite3.OperationalError("database or disk is full")
        forget(limit)

    monkeypatch.setattr(store, "_forget", needs_room)
    store.forget_old(time.time() + KEEP_S + 1)
    assert answers(store, 1)[2] and reserve.stat().st_size == 16 << 20


def test_threads_take_each_submission_once(store):
    for name in range(60):
        store.add(submission(name))
    found = []

    def work():
        while one := store.take():
            found.append(one[1]["name"])
            store.answer(one[0], {})

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == list(range(60))
