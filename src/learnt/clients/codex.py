"""Codex: `codex exec --json`, one event a line.

Commands may write in the folder and nowhere else (`--sandbox workspace-write`); the user's own arguments can say
otherwise. The stream names neither model nor cost, and no tokens when it was cut short: model and tokens then come
from the session's own file.
"""

from __future__ import annotations

import os
from typing import Any

from learnt.clients.shapes import (
    Answer,
    Call,
    Output,
    Request,
    count,
    dig,
    failure,
    joined,
    newest,
    one_line,
    program,
    record,
    records,
    text_of,
    tool_line,
    unless,
    with_model,
)

# Each of these settles the sandbox, and more than one of them is an error.
_SANDBOX = ("-s", "--sandbox", "--approve-for-me", "--dangerously-bypass-approvals-and-sandbox")


def call(request: Request) -> Call:
    """Return how Codex is started for this request."""
    return Call(
        client="codex",
        argv=(
            *program(request, "codex"),
            "exec",
            *unless(request.arguments, ("--json",), ("--json",)),
            *unless(request.arguments, _SANDBOX, ("--sandbox", "workspace-write")),
            *unless(request.arguments, ("--skip-git-repo-check",), ("--skip-git-repo-check",)),
            *with_model(request, "--model", "-m"),
            *request.arguments,
            "-",
        ),
        stdin=request.prompt,
        model=request.model,
        scratch=request.scratch,
    )


def read(output: Output) -> Answer:
    """Return what Codex told."""
    said: list[str] = []
    usage: Any = None
    thread = complaint = ""
    for found in records(output.stdout):
        kind = found.get("type")
        if kind == "thread.started":
            thread = text_of(found.get("thread_id"))
        elif kind == "item.completed" and dig(found, "item", "type") == "agent_message":
            said.append(text_of(dig(found, "item", "text")))
        elif kind == "turn.completed":
            usage, complaint = found.get("usage"), ""
        elif kind in ("turn.failed", "error"):
            complaint = text_of(dig(found, "error", "message")) or text_of(found.get("message")) or complaint
    transcript = _transcript(output, thread)
    model, used = _from_session(transcript)
    usage = usage or used
    return Answer(
        text=said[-1] if said else "",
        said=joined(said),
        model=output.call.model or model,
        tokens_in=count(dig(usage, "input_tokens")),
        tokens_cached=count(dig(usage, "cached_input_tokens")),
        tokens_out=count(dig(usage, "output_tokens")),
        transcript=transcript,
        error=failure(output, complaint),
    )


def progress(line: str) -> str:
    """Return the agent's latest words or the step that it takes."""
    found = record(line)
    item = found.get("item")
    kind = dig(item, "type")
    if kind == "agent_message" and found.get("type") == "item.completed":
        return one_line(dig(item, "text"))
    if found.get("type") != "item.started":
        return ""
    if kind == "command_execution":
        return one_line(dig(item, "command"))
    if kind == "mcp_tool_call":
        return tool_line(dig(item, "tool"), dig(item, "arguments"))
    return one_line(text_of(kind).replace("_", " "))


def _transcript(output: Output, thread: str) -> str:
    sessions = os.path.join(output.place("CODEX_HOME", ".codex"), "sessions")
    return newest(sessions, f"-{thread}.jsonl", depth=3) if thread else ""


def _from_session(path: str) -> tuple[str, Any]:
    model, used = "", None
    for found in records(path) if path else ():
        model = text_of(dig(found, "payload", "model")) if found.get("type") == "turn_context" else model
        used = dig(found, "payload", "info", "total_token_usage") or used
    return model, used
