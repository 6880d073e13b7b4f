"""A scripted model service on this machine, which answers each request well, badly, slowly or never.

It supports Anthropic's Messages and OpenAI's Chat Completions, without streaming. It sends the replies in order, then
the last one repeatedly, and records every request.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler
from types import MappingProxyType
from typing import Any, NamedTuple

from tests.support.serving import Served

TOKENS_IN = 1_200
TOKENS_OUT = 34
# How often a server that never finishes sends a byte.
DRIP_S = 0.02


class Reply(NamedTuple):
    """The service's answer: the model's text, an error with its status, a raw body, or no answer at all."""

    text: str = ""
    status: int = 200
    headers: Mapping[str, str] = MappingProxyType({})
    ending: str = ""
    refusal: str = ""
    usage: Any = None
    body: str | None = None
    silent: bool = False
    drips: bool = False


class Asked(NamedTuple):
    """A request that was received."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]


class ServiceStub(Served):
    """The service, and the requests that it received."""

    def __init__(self, *replies: Reply) -> None:
        super().__init__(_handler(self))
        self._replies = replies
        self._lock = threading.Lock()
        self.over = threading.Event()
        self.asked: list[Asked] = []

    def __exit__(self, *_: object) -> None:
        self.over.set()
        super().__exit__()

    def reply(self, asked: Asked) -> Reply:
        """Record the request and return the answer."""
        with self._lock:
            self.asked.append(asked)
            return self._replies[min(len(self.asked), len(self._replies)) - 1]


def _handler(stub: ServiceStub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            headers = {name.lower(): text for name, text in self.headers.items()}
            reply = stub.reply(Asked(self.path, headers, body))
            if reply.silent:
                stub.over.wait()
                return
            content = _content(self.path, reply).encode()
            self.send_response(reply.status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content) + 10_000 * reply.drips))
            for name, text in reply.headers.items():
                self.send_header(name, text)
            self.end_headers()
            if reply.drips:
                self._drip()
            else:
                self.wfile.write(content)

        def _drip(self) -> None:
            self.close_connection = True
            try:
                while not stub.over.wait(DRIP_S):
                    self.wfile.write(b" ")
            except OSError:  # the caller has closed the connection
                pass

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler


def _content(path: str, reply: Reply) -> str:
    if reply.body is not None:
        return reply.body
    if reply.status != 200:
        return json.dumps({"type": "error", "error": {"type": "some_error", "message": reply.text}})
    return json.dumps(_message(reply) if path.endswith("/messages") else _chat(reply))


def _message(reply: Reply) -> dict[str, Any]:
    usage = {"input_tokens": TOKENS_IN, "output_tokens": TOKENS_OUT} if reply.usage is None else reply.usage
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "stub-1",
        "content": [{"type": "text", "text": reply.text}],
        "stop_reason": reply.ending or "end_turn",
        "usage": usage,
    }


def _chat(reply: Reply) -> dict[str, Any]:
    message = {"role": "assistant", "content": reply.text, "refusal": reply.refusal or None}
    usage = {"prompt_tokens": TOKENS_IN, "completion_tokens": TOKENS_OUT} if reply.usage is None else reply.usage
    choice = {"index": 0, "message": message, "finish_reason": reply.ending or "stop"}
    return {"id": "chat_1", "object": "chat.completion", "model": "stub-1", "choices": [choice], "usage": usage}
