"""A load of many clients on a service, with candidates that hang and crash, while processes are killed."""

import itertools
import multiprocessing
import os
import signal
import sqlite3
import threading
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


def client(number, url, token, count, answers):
    """The process of one client: all of its candidates at once."""
    sources = [_SOURCES[expected(k)].format(comment=f"# {number} {k}") for k in range(count)]
    with NamedEvaluator(number, url, token, patience_s=120) as judge:
        found = judge.rewards([("1/19", source) for source in sources], timeout_s=TIMEOUT_S)
    for index, one in enumerate(found):
        answers.put((number, index, getattr(one, "label", f"EvaluationError: {one}")))
    answers.close()


def run(serving, clients, each, kills):
    """Return the labels that each client got, by client and index, and what the memory of the service was.

    ``kills`` of service, judge and client in turn are spread over the load.
    """
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    started = {n: _start(context, n, serving, each, answers) for n in range(clients)}
    found, memory = {}, []
    victims = itertools.cycle(("service", "judge", "client"))
    reader = threading.Thread(target=_read, args=(answers, found, clients * each), daemon=True)
    reader.start()
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
            number = next(n for n, process in started.items() if process.is_alive())
            started[number].kill()
            started[number].join()
            started[number] = _start(context, number, serving, each, answers)
    reader.join(3000)
    memory.append(_memory(serving))
    for process in started.values():
        process.join(60)
    return found, memory


def _start(context, number, serving, each, answers):
    process = context.Process(target=client, args=(number, serving.url, serving.token, each, answers), daemon=True)
    process.start()
    return process


def _read(answers, found, total):
    while len(found) < total:
        number, index, label = answers.get()
        assert (number, index) not in found, "two answers"
        found[number, index] = label


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
