"""A load of many clients on a service, with candidates that hang and crash, while processes are killed."""

import itertools
import json
import multiprocessing
import os
import signal
import sqlite3
import time

from serving import GOOD, resident_bytes

from kernelbench import Evaluator

LABELS = ("build_error", "wrong_value", "crashed", "timeout", "ok")
_SOURCES = {
    "build_error": "{comment}\nclass ModelNew: nonsense(",
    "wrong_value": "{comment}\n" + GOOD.replace("clamp(min=0)", "neg()"),
    "crashed": "{comment}\nimport os\n" + GOOD.replace("return", "os._exit(1);"),
    "timeout": "{comment}\n" + GOOD.replace("return", "\n        while True: pass\n        return"),
    "ok": "{comment}\n" + GOOD,
}
TIMEOUT_S = 3  # of a candidate that hangs


class NamedEvaluator(Evaluator):
    """Gives its submissions ids that say what is expected of them: a client that was killed goes on with them."""

    def __init__(self, client, *arguments, **options):
        super().__init__(*arguments, **options)
        self._client_number = client

    def _body(self, index, candidate, kind, conditions):
        label = LABELS.index(expected(index))
        return super()._body(index, candidate, kind, conditions) | {"id": named(self._client_number, index, label)}


def named(client, index, label):
    return f"{client:08x}{index:08x}{label:016x}"


def expected(index):
    """Half a tenth hangs, half a tenth crashes; most fail to build, as that is quick."""
    place = index % 20
    return {3: "timeout", 9: "crashed", 14: "ok"}.get(place, "wrong_value" if place % 4 == 1 else "build_error")


def client(number, url, token, count, folder):
    """The process of one client: all of its candidates at once. Its labels lie in a file of its own, whole or not."""
    sources = [_SOURCES[expected(k)].format(comment=f"# {number} {k}") for k in range(count)]
    with NamedEvaluator(number, url, token, patience_s=120) as judge:
        found = judge.rewards([("1/19", source) for source in sources], timeout_s=TIMEOUT_S)
    labels = [getattr(one, "label", f"EvaluationError: {one}") for one in found]
    path = folder / f"{number}-{os.getpid()}.json"
    path.with_suffix(".part").write_text(json.dumps(labels))
    path.with_suffix(".part").rename(path)


def run(serving, clients, each, kills):
    """Return the labels that each client got, by client and index, and what the memory of the service was.

    ``kills`` of service, judge and client in turn are spread over the load. What a client got that was killed, another
    one gets in its place.
    """
    context, folder = multiprocessing.get_context("spawn"), serving.folder.parent / "clients"
    folder.mkdir()
    started = {n: _start(context, n, serving, each, folder) for n in range(clients)}
    memory, victims = [], itertools.cycle(("service", "judge", "client"))
    total = clients * each
    for kill in range(1, kills + 1):
        _wait_until(lambda kill=kill: answered(serving) >= total * kill // (kills + 1))
        memory.append(_memory(serving))
        victim = next(victims)
        if victim == "service":
            serving.kill()
            serving.start()
        elif victim == "judge":
            for pid in serving.judges:
                os.kill(pid, signal.SIGKILL)
        else:
            number = next((n for n, process in started.items() if process.is_alive()), 0)
            started[number].kill()
            started[number].join()
            started[number] = _start(context, number, serving, each, folder)
    end = time.monotonic() + 3000
    for process in started.values():
        process.join(max(0, end - time.monotonic()))
    memory.append(_memory(serving))
    return _found(folder), memory


def _start(context, number, serving, each, folder):
    process = context.Process(target=client, args=(number, serving.url, serving.token, each, folder), daemon=True)
    process.start()
    return process


def _found(folder):
    found = {}
    for path in folder.glob("*.json"):
        number = int(path.name.partition("-")[0])
        for index, label in enumerate(json.loads(path.read_text())):
            assert found.setdefault((number, index), label) == label, "two answers"
    return found


def _wait_until(reached, within_s=3000):
    end = time.monotonic() + within_s
    while not reached():
        assert time.monotonic() < end
        time.sleep(0.2)


def _memory(serving):
    return resident_bytes(serving.process.pid) + resident_bytes(serving.evaluator)


def rows(serving):
    """State and answer of every submission, by id."""
    with sqlite3.connect(f"file:{serving.folder / 'queue.sqlite'}?mode=ro", uri=True) as database:
        return {name: (state, answer) for name, state, answer in database.execute(
            "SELECT id, state, answer FROM submissions")}  # fmt: skip


def answered(serving):
    with sqlite3.connect(f"file:{serving.folder / 'queue.sqlite'}?mode=ro", uri=True) as database:
        return database.execute("SELECT COUNT(*) FROM submissions WHERE state = 'done'").fetchone()[0]
