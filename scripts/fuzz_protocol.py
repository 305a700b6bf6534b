"""Malformed messages from a worker, and damaged results logs: does anything but the candidate fail?

    python scripts/fuzz_protocol.py --messages 10000 --seed 1

A worker here is the judge's real one, whose module answers every request with a
message that was made wrong in one of several ways: bytes changed, cut or doubled,
values of other types, other sizes, deeper or longer than anything honest. Each
message must end in an answer that the judge can use, or in a failure of the
candidate. Exit status 1 and the message where it ends in anything else.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import socket
import struct
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from harness.compile import Artefact, BuildContext
from harness.compile.extension.build import ExtensionBuilder, Refused
from harness.judge.compare import check_kind
from harness.judge.conditions import Conditions
from harness.judge.evaluate import evaluate
from harness.problem.module import load_problem
from harness.process import protocol
from harness.process.fork_server import ForkServer
from harness.result import CandidateFailure, Result, Status
from harness.solution.discover import read_solution
from kernelbench import suite
from kernelbench.run import CONFIG, LOG, Run, RunError

_BATCH = 400  # messages that one worker sends
_KIND = {"type": "Tensor", "shape": [64, 4096], "dtype": "float32", "device": "cpu"}
_HONEST = [
    {"times_ms": [0.1, 0.2], "queue_full": True, "outputs": [[_KIND], [_KIND]], "structures": ["tensor", "tensor"]},
    {"weights": "copied", "setup_s": 0.1},
    {"ok": True},
    {"wall_ms": 1.0},
    {"error": {"status": "runtime_error", "message": "x", "log": ""}},
]
_REQUEST = {"function": "load_inline", "arguments": {"name": "kb_x", "cpp_sources": "int a;", "functions": ["f"]}}
_VALUES = [
    None, True, -1, 0, 1e308, float("nan"), float("inf"), -0.0, 2**63, 10**400, "", "\0", "\ud800", "\x1b[2J", "ok",
    [], {}, [[]], {"": None}, "x" * 70_000, [0] * 5_000, "/etc/passwd", "../..", {"type": "Tensor"}, ["Tensor"] * 3,
]  # fmt: skip
_OTHER_ENCODINGS = ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"]

_ANSWERS_IN_ITS_PLACE = """
import gc, socket
channel = next(o for o in gc.get_objects() if type(o) is socket.socket and o.fileno() >= 0)
for message in {messages!r}:
    channel.sendall(message)
    channel.recv(1 << 16)
while True:
    channel.recv(1 << 16)
"""
_SENDS_WHAT_IT_IS_TOLD = """
import gc, os, socket, struct
channel = next(o for o in gc.get_objects() if type(o) is socket.socket and o.fileno() >= 0)
for message in {messages!r}:
    channel.sendall(message)
os._exit(0)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--evaluations", type=int, default=50, help="whole evaluations with malformed answers")
    parser.add_argument("--logs", type=int, default=1_000, help="damaged results logs")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    endings = fuzz_messages(options.messages, options.seed)
    endings += fuzz_evaluations(options.evaluations, options.seed)
    endings += fuzz_logs(options.logs, options.seed)
    for what, count in endings.most_common():
        print(f"{count:8d}  {what}")


def fuzz_messages(count: int, seed: int) -> Counter:
    """Return how so many messages ended; raises AssertionError for an ending that is not the candidate's."""
    chance, endings = random.Random(seed), Counter()
    with ForkServer() as server, tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "1_19.py")
        path.write_text("", encoding="utf-8")
        context = BuildContext(server, None, torch.__version__, 5, 1 << 30)
        builder = ExtensionBuilder(read_solution(path), context)
        for begin in range(0, count, _BATCH):
            messages = [malformed(chance) for _ in range(min(_BATCH, count - begin))]
            for message in messages:
                endings[_ending(lambda m=message: judge_message(m, builder), message)] += 1
            # the same through a real process: what it sends first decides
            path.write_text(_SENDS_WHAT_IT_IS_TOLD.format(messages=messages[:20]), encoding="utf-8")
            with server.fork({}, 1 << 30, build=lambda *_: {"raised": "RuntimeError"}, readable=[path]) as worker:
                request = {"op": "import", "solution": str(path)}
                endings["process: " + _ending(lambda w=worker, r=request: w.request(r, 10), messages[0])] += 1
    return endings


def fuzz_evaluations(count: int, seed: int) -> Counter:
    """Return how so many whole evaluations ended whose worker answers with malformed messages."""
    chance, endings = random.Random(seed), Counter()
    workload = load_problem(suite.find("1/19")[0]).workload("small")
    conditions = Conditions(torch.device("cpu"), timeout_s=1, memory_bytes=1 << 30)
    with ForkServer() as server, tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "1_19.py")
        for _ in range(count):
            messages = [malformed(chance) if chance.random() < 0.3 else honest() for _ in range(20)]
            path.write_text(_ANSWERS_IN_ITS_PLACE.format(messages=messages), encoding="utf-8")
            result = evaluate(workload, read_solution(path), Artefact(), conditions, server)
            assert result.status is not Status.OK, "a worker that computed nothing is ok"
            endings[f"evaluation: {result.status}"] += 1
    return endings


def judge_message(message: bytes, builder: ExtensionBuilder) -> None:
    """Read a message as the judge does, and look at all that it looks at."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(message[: 64 << 10])
        theirs.shutdown(socket.SHUT_WR)
        try:
            answer = protocol.receive(ours)
        except (protocol.Garbled, protocol.Closed) as error:
            raise CandidateFailure("crashed", str(error)) from None
    for described in answer["outputs"] if isinstance(answer.get("outputs"), list) else []:
        check_kind(described, [torch.empty(64, 4096)], torch.device("cpu"))
    if "build" in answer:
        request = answer["build"]
        try:  # what happens on our side; the compiler runs in a process that holds nothing
            request = request if isinstance(request, dict) else {}
            builder._key(builder.checked(request, builder.solution.root), builder._environment(request))
        except Refused as error:
            raise CandidateFailure("runtime_error", str(error)) from None


def honest() -> bytes:
    one_call = {"times_ms": [0.1], "outputs": [[_KIND]], "structures": ["tensor"]}
    body = json.dumps({**_HONEST[0], **one_call, **_HONEST[1], **_HONEST[2]}).encode()
    return struct.pack("!I", len(body)) + body


def malformed(chance: random.Random) -> bytes:
    """One message, wrong in one or several ways."""
    message = json.loads(json.dumps(chance.choice([*_HONEST, {"build": _REQUEST}])))
    for _ in range(chance.randint(1, 3)):
        _change_a_value(message, chance)
    body = json.dumps(message).encode()
    if chance.random() < 0.1:
        body = json.dumps(message).encode(chance.choice(_OTHER_ENCODINGS))
    if chance.random() < 0.1:
        body = b"[" * chance.randint(1, 50_000)
    length = len(body)
    if chance.random() < 0.2:
        length = chance.choice([0, 1, length - 1, length + 1, protocol.MAX_BYTES + 1, 2**32 - 1])
    data = bytearray(struct.pack("!I", max(length, 0)) + body)
    if chance.random() < 0.3:
        for _ in range(chance.randint(1, 8)):
            data[chance.randrange(len(data))] = chance.randrange(256)
    if chance.random() < 0.1:
        del data[chance.randrange(len(data)) :]
    return bytes(data)


def _change_a_value(message: Any, chance: random.Random) -> None:
    places = list(_places(message))
    if not places:
        return
    container, key = chance.choice(places)
    if chance.random() < 0.2:
        del container[key]
    elif chance.random() < 0.2 and isinstance(container, list):
        container.extend(container[:] * chance.randint(1, 3))
    else:
        container[key] = copy.deepcopy(chance.choice(_VALUES))


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from _places(value[key])


def fuzz_logs(count: int, seed: int) -> Counter:
    """Return how so many damaged results logs were read; raises AssertionError for anything but results or RunError."""
    chance, endings = random.Random(seed), Counter()
    solution = {"name": "a.py", "sample": 0, "kind": "py", "language": "pytorch", "sha256": ""}
    record = Result("1/19", "relu", {"name": "small"}, solution, "ok").__dict__
    honest = (json.dumps(record) + "\n").encode() * 3
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder)
        (run / CONFIG).write_text("{}")
        for _ in range(count):
            data = bytearray(honest)
            for _ in range(chance.randint(1, 5)):
                data[chance.randrange(len(data))] = chance.randrange(256)
            if chance.random() < 0.3:
                changed = json.loads(json.dumps(record))
                _change_a_value(changed, chance)
                data = bytearray(honest + json.dumps(changed).encode() + b"\n")
            (run / LOG).write_bytes(data)
            endings[_log_ending(run)] += 1
    return endings


def _log_ending(run: Path) -> str:
    try:
        loaded = Run.load(run)
        loaded.latest()
    except RunError:
        return "log: a clear error"
    return "log: results"


def _ending(action, message: bytes) -> str:
    try:
        action()
    except CandidateFailure as failure:
        return f"the candidate fails: {failure.status}"
    except Exception:
        traceback.print_exc()
        print(f"the message: {message[:2000]!r}", file=sys.stderr)
        raise AssertionError("a message became more than the candidate's failure") from None
    return "an answer"


if __name__ == "__main__":
    main()
