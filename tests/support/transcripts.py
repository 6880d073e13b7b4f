"""Lines in transcripts, as the clients write them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

NOON = "2026-03-01T12:00:00.000Z"
NOON_MS = 1_772_366_400_000
# How transcripts from Codex, Gemini CLI and opencode start.
META = {"id": "r-1", "cwd": "/home/me/shop", "git": {"branch": "tills"}, "source": "exec"}
HEAD = {"sessionId": "g-1", "projectHash": "0", "startTime": NOON, "lastUpdated": NOON, "kind": "main"}
INFO = {
    "id": "ses_1",
    "directory": "/home/me/shop",
    "model": {"id": "stub-model", "providerID": "stub"},
    "time": {"created": NOON_MS, "updated": NOON_MS + 5},
}


def written(path: Path, records: list[Any], *, end: str = "\n") -> str:
    path.write_bytes(b"".join(json.dumps(record).encode() + end.encode() for record in records))
    return str(path)


def claude(kind: str, content: object, **more: Any) -> dict[str, Any]:
    message = {"role": kind, "content": content, **({"model": "claude-opus-5-5"} if kind == "assistant" else {})}
    common = {"uuid": "u", "sessionId": "s-1", "cwd": "/home/me/shop", "gitBranch": "tills", "timestamp": NOON}
    return {"type": kind, "message": message, "isSidechain": False, **common, **more}


def used(tool: str, given: object, id: str = "t1", **more: Any) -> dict[str, Any]:
    return claude("assistant", [{"type": "tool_use", "id": id, "name": tool, "input": given}], **more)


def answered(content: object, id: str = "t1", *, is_error: bool = False, **more: Any) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": id, "content": content, "is_error": is_error}
    return claude("user", [block], **more)


def codex(payload: Mapping[str, Any], kind: str = "response_item") -> dict[str, Any]:
    return {"timestamp": NOON, "type": kind, "payload": payload}


def codex_call(name: str, arguments: object, id: str = "c1") -> dict[str, Any]:
    return codex({"type": "function_call", "name": name, "arguments": json.dumps(arguments), "call_id": id})


def codex_output(output: object, id: str = "c1", kind: str = "function_call_output") -> dict[str, Any]:
    return codex({"type": kind, "call_id": id, "output": output})


def codex_message(role: str, *parts: str) -> dict[str, Any]:
    return codex({"type": "message", "role": role, "content": [{"type": "input_text", "text": part} for part in parts]})


def gemini(id: str, content: object = "", **more: Any) -> dict[str, Any]:
    return {"id": id, "timestamp": NOON, "type": "gemini", "content": content, "model": "gemini-2.5-flash", **more}


def gemini_call(
    name: str, given: object, output: str, *, status: str = "success", key: str = "output"
) -> dict[str, Any]:
    response = {"functionResponse": {"id": "g1", "name": name, "response": {key: output}}}
    return {"id": "g1", "name": name, "args": given, "result": [response], "status": status, "timestamp": NOON}


def asked(id: str, *parts: str) -> dict[str, Any]:
    return {"id": id, "timestamp": NOON, "type": "user", "content": [{"text": part} for part in parts]}


def copilot(kind: str, *, agent: str = "", **data: Any) -> dict[str, Any]:
    return {"type": kind, "data": data, "id": "e", "timestamp": NOON, **({"agentId": agent} if agent else {})}


def copilot_call(name: str, given: object, *, id: str = "c1", agent: str = "", said: str = "") -> dict[str, Any]:
    request = {"toolCallId": id, "name": name, "arguments": given, "type": "function"}
    return copilot("assistant.message", agent=agent, content=said, toolRequests=[request], model="gpt-5.4")


def copilot_output(content: str, *, id: str = "c1", agent: str = "", **more: Any) -> dict[str, Any]:
    fields = {"toolCallId": id, "success": True, "result": {"content": content}, **more}
    return copilot("tool.execution_complete", agent=agent, **fields)


def part(tool: str, given: object, **state: Any) -> dict[str, Any]:
    return {"type": "tool", "tool": tool, "callID": "o1", "state": {"status": "completed", "input": given, **state}}
