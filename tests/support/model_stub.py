"""A scripted model that supports the protocols of real clients.

The protocols are OpenAI's Responses and Chat Completions, Anthropic's Messages and Gemini's generateContent. Requests
that offer tools are the agent's turns and get the scripted replies in order, then the last one repeatedly, or a reply
that the test chooses for the request. Requests without tools are a client's own (titles, routing) and get a fixed word.
Every request is recorded.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler
from itertools import count
from types import MappingProxyType
from typing import Any, NamedTuple

from tests.support.serving import Served

TOKENS_IN = 1_200
TOKENS_CACHED = 200
TOKENS_OUT = 34
# No two models give the same id: a client that resumes a conversation tells its messages by them.
_CALLS = count(1)
ASIDE = '{"reasoning": "easy", "model_choice": "flash", "complexity_score": 1, "title": "A title"}'


class Reply(NamedTuple):
    """One of the model's turns: it refuses, or returns the text and calls the tool, if there is one."""

    text: str = ""
    refusal: str = ""
    tool: str = ""
    namespace: str = ""
    """The group that the tool is in, for Codex, which groups its tools."""
    arguments: Mapping[str, Any] = MappingProxyType({})
    tokens_in: int = TOKENS_IN
    """The number of input tokens that the model reports; if it is high, a client compacts the conversation."""


class Asked(NamedTuple):
    """A request that was received."""

    path: str
    body: str


class ModelStub(Served):
    """The model, and the requests that it received."""

    def __init__(self, *replies: Reply) -> None:
        super().__init__(_handler(self))
        self._lock = threading.Lock()
        self.begin(*replies)

    def begin(self, *replies: Reply, choose: Callable[[str], Reply | None] = lambda body: None) -> None:
        """Start again with another script; `choose` can answer an agent's request before the script does."""
        with self._lock:
            self._replies = replies
            self._choose = choose
            self._turns = 0
            self.asked: list[Asked] = []

    def reply(self, path: str, body: str) -> tuple[Reply, str]:
        """Record the request; return the model's answer, and a name that is unique to it."""
        with self._lock:
            self.asked.append(Asked(path, body))
            name = f"call_{next(_CALLS)}"
            if not json.loads(body).get("tools"):
                return Reply(ASIDE), name
            chosen = self._choose(body)
            if chosen is None:
                chosen = self._replies[min(self._turns, len(self._replies) - 1)]
                self._turns += 1
            return chosen, name


def _handler(stub: ModelStub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode("utf-8", "replace")
            self._send(*_answer(self.path.partition("?")[0], body, *stub.reply(self.path, body)))

        def do_GET(self) -> None:
            self._send(404, {"error": "there is nothing to be had here"})

        def log_message(self, format: str, *args: object) -> None:
            pass

        def _send(self, status: int, answer: dict[str, Any] | Iterator[str]) -> None:
            streamed = not isinstance(answer, dict)
            content = ("".join(answer) if streamed else json.dumps(answer)).encode()
            self.send_response(status)
            self.send_header("content-type", "text/event-stream" if streamed else "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    return Handler


def _answer(path: str, body: str, reply: Reply, name: str) -> tuple[int, dict[str, Any] | Iterator[str]]:
    """Return the status, and the whole answer or, if the protocol streams, its events."""
    if reply.refusal:
        return 400, {"error": {"message": reply.refusal, "code": 400, "status": "INVALID_ARGUMENT"}}
    if path.endswith("/responses"):
        return 200, _responses(reply, name)
    if path.endswith("/chat/completions"):
        return 200, _chat(reply, name) if json.loads(body).get("stream") else _chat_whole(reply, name)
    if path.endswith("/messages"):
        return 200, _messages(reply, name, json.loads(body).get("model", ""))
    if path.endswith(":streamGenerateContent"):
        return 200, iter([f"data: {json.dumps(_gemini(reply))}\n\n"])
    if path.endswith(":generateContent"):
        return 200, _gemini(reply)
    return 404, {"error": {"message": f"nothing at {path}"}}


def _responses(reply: Reply, name: str) -> Iterator[str]:
    items: list[dict[str, Any]] = []
    if reply.text or not reply.tool:
        content = [{"type": "output_text", "text": reply.text, "annotations": []}]
        items.append({"type": "message", "id": f"msg_{name}", "role": "assistant", "content": content})
    if reply.tool:
        items.append(
            {
                "type": "function_call",
                "id": f"fc_{name}",
                "call_id": name,
                "name": reply.tool,
                "arguments": json.dumps(dict(reply.arguments)),
                **({"namespace": reply.namespace} if reply.namespace else {}),
            }
        )
    usage = {
        "input_tokens": reply.tokens_in,
        "input_tokens_details": {"cached_tokens": TOKENS_CACHED},
        "output_tokens": TOKENS_OUT,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": reply.tokens_in + TOKENS_OUT,
    }
    whole = {"id": "resp_1", "object": "response", "status": "completed", "output": items, "usage": usage}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {"id": "resp_1"}},
        *(
            {"type": "response.output_item.done", "output_index": place, "item": item}
            for place, item in enumerate(items)
        ),
        {"type": "response.completed", "response": whole},
    ]
    for event in events:
        yield f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"


def _chat(reply: Reply, name: str) -> Iterator[str]:
    delta = {"role": "assistant", **_chat_message(reply, name)}
    for choices, usage in (
        ([{"index": 0, "delta": delta, "finish_reason": None}], None),
        ([{"index": 0, "delta": {}, "finish_reason": "tool_calls" if reply.tool else "stop"}], None),
        ([], _chat_usage(reply)),
    ):
        chunk = {"id": "chat_1", "object": "chat.completion.chunk", "created": 0, "model": "stub", "choices": choices}
        yield f"data: {json.dumps({**chunk, 'usage': usage})}\n\n"
    yield "data: [DONE]\n\n"


def _chat_whole(reply: Reply, name: str) -> dict[str, Any]:
    message = {"role": "assistant", **_chat_message(reply, name)}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {"id": "chat_1", "object": "chat.completion", "created": 0, "choices": [choice], "usage": _chat_usage(reply)}


def _chat_message(reply: Reply, name: str) -> dict[str, Any]:
    if not reply.tool:
        return {"content": reply.text}
    function = {"name": reply.tool, "arguments": json.dumps(dict(reply.arguments))}
    calls = [{"index": 0, "id": name, "type": "function", "function": function}]
    return {"tool_calls": calls, **({"content": reply.text} if reply.text else {})}


def _chat_usage(reply: Reply) -> dict[str, Any]:
    return {
        "prompt_tokens": reply.tokens_in,
        "completion_tokens": TOKENS_OUT,
        "total_tokens": reply.tokens_in + TOKENS_OUT,
        "prompt_tokens_details": {"cached_tokens": TOKENS_CACHED},
    }


def _messages(reply: Reply, name: str, model: str) -> Iterator[str]:
    parts: list[tuple[dict[str, Any], dict[str, Any]]] = []
    if reply.text or not reply.tool:
        parts.append(({"type": "text", "text": ""}, {"type": "text_delta", "text": reply.text}))
    if reply.tool:
        block = {"type": "tool_use", "id": f"toolu_{name}", "name": reply.tool, "input": {}}
        parts.append((block, {"type": "input_json_delta", "partial_json": json.dumps(dict(reply.arguments))}))
    message = {"id": f"msg_{name}", "type": "message", "role": "assistant", "model": model, "content": []}
    read = {"input_tokens": reply.tokens_in - TOKENS_CACHED, "cache_read_input_tokens": TOKENS_CACHED}
    usage = {**read, "output_tokens": 0}
    ended = {"stop_reason": "tool_use" if reply.tool else "end_turn", "stop_sequence": None}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**message, "usage": usage}},
        *(
            event
            for index, (block, delta) in enumerate(parts)
            for event in (
                {"type": "content_block_start", "index": index, "content_block": block},
                {"type": "content_block_delta", "index": index, "delta": delta},
                {"type": "content_block_stop", "index": index},
            )
        ),
        {"type": "message_delta", "delta": ended, "usage": {"output_tokens": TOKENS_OUT}},
        {"type": "message_stop"},
    ]
    for event in events:
        yield f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"


def _gemini(reply: Reply) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"text": reply.text}] if reply.text or not reply.tool else []
    if reply.tool:
        parts.append({"functionCall": {"name": reply.tool, "args": dict(reply.arguments)}})
    return {
        "candidates": [{"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": "STOP"}],
        "usageMetadata": {
            "promptTokenCount": TOKENS_IN,
            "cachedContentTokenCount": TOKENS_CACHED,
            "candidatesTokenCount": TOKENS_OUT,
            "totalTokenCount": TOKENS_IN + TOKENS_OUT,
        },
    }
