"""A scripted service for embeddings on this machine, as OpenAI's and Ollama's: it answers well, badly or never.

A text's vector says which of a few topics it is about, whatever words it uses. Every request is recorded.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler
from typing import Any, NamedTuple

from tests.support.serving import Served

TOPICS = (
    ("login", "token", "authentication", "session"),
    ("invoice", "vat", "price", "rounding"),
    ("makefile", "tabs", "indentation"),
    ("database", "lock", "transaction"),
)
TOKENS = 1_000
_REPEATED = 40


class Asked(NamedTuple):
    """A request that was received."""

    path: str
    headers: Mapping[str, str]
    model: str
    texts: list[str]


class EmbeddingStub(Served):
    """The service: `fail_after` requests it answers with an error, and if it is `silent`, it never answers."""

    def __init__(self, *, fail_after: int | None = None, silent: bool = False, body: str | None = None) -> None:
        super().__init__(_handler(self))
        self.fail_after, self.silent, self.body = fail_after, silent, body
        self.over = threading.Event()
        self.asked: list[Asked] = []

    def __exit__(self, *_: object) -> None:
        self.over.set()
        super().__exit__()

    @property
    def texts(self) -> list[str]:
        """All texts that were sent."""
        return [text for asked in self.asked for text in asked.texts]


def make_vector(text: str) -> list[float]:
    """Return how much a text is about each topic, in many dimensions; the last ones are the same for all texts."""
    lower = text.lower()
    shares = [*(float(sum(word in lower for word in topic)) for topic in TOPICS), 0.25]
    return [share for share in shares for _ in range(_REPEATED)]


def _handler(stub: EmbeddingStub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            headers = {name.lower(): text for name, text in self.headers.items()}
            stub.asked.append(Asked(self.path, headers, body["model"], body["input"]))
            if stub.silent:
                stub.over.wait()
                return
            fails = stub.fail_after is not None and len(stub.asked) > stub.fail_after
            answer = {"error": {"message": "out of order"}} if fails else _answer(self.path, body["input"])
            content = (json.dumps(answer) if stub.body is None else stub.body).encode()
            self.send_response(503 if fails else 200)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler


def _answer(path: str, texts: list[str]) -> dict[str, Any]:
    vectors = [make_vector(text) for text in texts]
    if path.endswith("/api/embed"):
        return {"embeddings": vectors, "prompt_eval_count": TOKENS}
    rows = [{"object": "embedding", "index": place, "embedding": row} for place, row in enumerate(vectors)]
    return {"object": "list", "data": rows[::-1], "usage": {"prompt_tokens": TOKENS}}
