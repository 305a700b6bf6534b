"""A stand-in for a language model: an HTTP server that speaks OpenAI's chat-completions protocol.

    python scripts/stand_in.py runs/refine/calls.jsonl --port 8000
    kb solve --solver scripts/solvers/refine.py --problems 1/19 --budget 3 -o runs/again \\
        --model recorded --base-url http://localhost:8000/v1

It gives the answers that a run has recorded, to whoever sends the same conversation. From Python, ``StandIn``
answers what a function says, and fails as endpoints do: rate limits, errors, cut streams, garbage, silence.
"""

from __future__ import annotations

import argparse
import json
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Answer:
    """Return what the model says, ``after_s`` seconds later."""

    text: str
    finish_reason: str = "stop"
    after_s: float = 0.0
    tool_calls: list[tuple[str, str]] = ()  # name, and arguments as JSON

    @property
    def calls(self) -> list[dict[str, Any]]:
        """Return the tool calls as the protocol has them."""
        return [
            {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": arguments}}
            for number, (name, arguments) in enumerate(self.tool_calls)
        ]


@dataclass(frozen=True)
class Fault:
    """An HTTP error with the endpoint's words; with status 200 a body: ``cut``, ``garbage`` or JSON."""

    status: int = 200
    message: str = ""
    code: str | None = None
    retry_after: str | None = None
    body: str | dict[str, Any] = ""  # cut, garbage
    after_s: float = 0.0


class StandIn:
    """Serves in the background; ``answer(request, number)`` gives an Answer, a Fault or a text.

    ``requests`` are the bodies that arrived, in order; ``keys`` the keys that came with them, ``heads`` the
    fields of their heads.
    """

    def __init__(self, answer: Callable[[dict[str, Any], int], Answer | Fault | str], port: int = 0):
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.heads: list[dict[str, str]] = []
        self._answer = answer
        self._lock = threading.Lock()
        handler = type("Handler", (_Handler,), {"stand_in": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", port), handler)
        self._server.daemon_threads = True
        self.base_url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def answer(self, request: dict[str, Any], head: dict[str, str]) -> Answer | Fault:
        with self._lock:
            self.requests.append(request)
            self.keys.append(head.get("authorization", "").removeprefix("Bearer "))
            self.heads.append(head)
            number = len(self.requests)
        said = self._answer(request, number)
        return Answer(said) if isinstance(said, str) else said

    def serve(self) -> None:
        self._server.serve_forever(poll_interval=0.05)

    def __enter__(self) -> StandIn:
        threading.Thread(target=self.serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    stand_in: StandIn

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path != "/v1/chat/completions":
            return self._send(404, {"error": {"message": f"no such path: {self.path}"}})
        said = self.stand_in.answer(request, {name.lower(): value for name, value in self.headers.items()})
        time.sleep(said.after_s)
        if isinstance(said, Fault):
            self._fail(said, request)
        elif request.get("stream"):
            self._stream(said, request)
        else:
            self._send(200, _completion(said, request))

    def _fail(self, fault: Fault, request: dict[str, Any]) -> None:
        if fault.status != 200:
            error = {"message": fault.message, "code": fault.code, "type": "stand_in"}
            return self._send(fault.status, {"error": error}, fault.retry_after)
        if isinstance(fault.body, dict):
            if request.get("stream"):
                text = f"data: {json.dumps(fault.body)}\n\ndata: [DONE]\n\n"
                return self._write(200, text.encode(), "text/event-stream")
            return self._send(200, fault.body)
        if fault.body == "garbage":
            return self._write(200, b"<html>the gateway says hello</html>", "application/json")
        whole = json.dumps(_completion(Answer("never seen in full"), request)).encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream" if request.get("stream") else "application/json")
        self.send_header("content-length", str(len(whole)))
        self.end_headers()
        half = b'data: {"choices": [{"index": 0, "delta": {"content": "ne'
        self.wfile.write(half if request.get("stream") else whole[: len(whole) // 2])
        self.close_connection = True

    def _stream(self, said: Answer, request: dict[str, Any]) -> None:
        completion = _completion(said, request)
        shared = {key: completion[key] for key in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
        pieces = [said.text[i : i + 20] for i in range(0, len(said.text), 20)]
        chunks = [{"choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]} for piece in pieces]
        for index, call in enumerate(said.calls):
            head = {**call, "index": index, "function": {**call["function"], "arguments": ""}}
            tail = {"index": index, "function": {"arguments": call["function"]["arguments"]}}
            chunks += [
                {"choices": [{"index": 0, "delta": {"tool_calls": [part]}, "finish_reason": None}]}
                for part in (head, tail)
            ]
        chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": said.finish_reason}]})
        chunks.append({"choices": [], "usage": completion["usage"]})
        lines = [f"data: {json.dumps(shared | chunk)}\n\n" for chunk in chunks] + ["data: [DONE]\n\n"]
        self._write(200, "".join(lines).encode(), "text/event-stream")

    def _send(self, status: int, body: dict[str, Any], retry_after: str | None = None) -> None:
        self._write(status, json.dumps(body).encode(), "application/json", retry_after)

    def _write(self, status: int, body: bytes, content_type: str, retry_after: str | None = None) -> None:
        self.send_response(status)
        self.send_header("content-type", content_type)
        self.send_header("content-length", str(len(body)))
        if retry_after is not None:
            self.send_header("retry-after", retry_after)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


def _completion(said: Answer, request: dict[str, Any]) -> dict[str, Any]:
    """Words are its tokens."""
    prompt = sum(len((message["content"] or "").split()) for message in request["messages"])
    written = len(said.text.split())
    return {
        "id": "stand-in",
        "object": "chat.completion",
        "created": 0,
        "model": request["model"],
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": said.text}
                | ({"tool_calls": said.calls} if said.tool_calls else {}),
                "finish_reason": said.finish_reason,
            }
        ],
        "usage": {"prompt_tokens": prompt, "completion_tokens": written, "total_tokens": prompt + written},
    }


def _of_call(call: dict[str, Any]) -> Answer:
    tools = [(tool["name"], tool["arguments"]) for tool in call.get("tool_calls", [])]
    return Answer(call["answer"], call["finish_reason"], tool_calls=tools)


def recorded(log: Path) -> Callable[[dict[str, Any], int], Answer | Fault]:
    """Answers of a run's ``calls.jsonl`` by conversation; several to the same one in turn, over and over."""
    answers: dict[str, deque[Answer]] = defaultdict(deque)
    for line in log.read_text(encoding="utf-8").splitlines():
        call = json.loads(line)
        answers[json.dumps(call["messages"])].append(_of_call(call))
    lock = threading.Lock()

    def answer(request: dict[str, Any], number: int) -> Answer | Fault:
        with lock:
            known = answers.get(json.dumps(request["messages"]))
            if not known:
                return Fault(400, "no answer to this conversation is recorded")
            known.rotate(-1)
            return known[-1]

    return answer


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("log", type=Path, help="calls.jsonl of a run")
    parser.add_argument("--port", type=int, default=8000)
    arguments = parser.parse_args()
    server = StandIn(recorded(arguments.log), arguments.port)
    print(f"serving {arguments.log} at {server.base_url}; Ctrl-C ends it")
    try:
        server.serve()
    except KeyboardInterrupt:
        pass
