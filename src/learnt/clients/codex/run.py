"""Codex: `codex exec --json`, one event a line.

Commands may write in the folder and nowhere else (`--sandbox workspace-write`); the user's own arguments can say
otherwise. The stream names neither model nor cost, and no tokens when it was cut short: model and tokens then come
from the session's own file.
"""

from __future__ import annotations

import os
from typing import Any

from learnt.clients.codex.transcript import root
from learnt.clients.kit.run import (
    Call,
    Output,
    RunReport,
    RunRequest,
    failure,
    join_messages,
    newest,
    one_line,
    parse_record,
    program,
    records,
    tool_line,
    unless,
    with_model,
)
from learnt.text.json_values import count, dig, text_of

# Each of these options sets the sandbox; Codex refuses more than one.
_SANDBOX = ("-s", "--sandbox", "--approve-for-me", "--dangerously-bypass-approvals-and-sandbox")


def call(request: RunRequest) -> Call:
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


def read(output: Output) -> RunReport:
    """Return what Codex reports."""
    said: list[str] = []
    usage: Any = None
    thread = complaint = ""
    for record in records(output.stdout):
        kind = record.get("type")
        if kind == "thread.started":
            thread = text_of(record.get("thread_id"))
        elif kind == "item.completed" and dig(record, "item", "type") == "agent_message":
            said.append(text_of(dig(record, "item", "text")))
        elif kind == "turn.completed":
            usage, complaint = record.get("usage"), ""
        elif kind in ("turn.failed", "error"):
            complaint = text_of(dig(record, "error", "message")) or text_of(record.get("message")) or complaint
    transcript = _transcript(output, thread)
    model, used = _from_session(transcript)
    usage = usage or used
    return RunReport(
        text=said[-1] if said else "",
        said=join_messages(said),
        model=output.call.model or model,
        tokens_in=count(dig(usage, "input_tokens")),
        tokens_cached=count(dig(usage, "cached_input_tokens")),
        tokens_out=count(dig(usage, "output_tokens")),
        transcript=transcript,
        error=failure(output, complaint),
    )


def progress(line: str) -> str:
    """Return the agent's latest words or the step that it takes."""
    record = parse_record(line)
    item = record.get("item")
    kind = dig(item, "type")
    if kind == "agent_message" and record.get("type") == "item.completed":
        return one_line(dig(item, "text"))
    if record.get("type") != "item.started":
        return ""
    if kind == "command_execution":
        return one_line(dig(item, "command"))
    if kind == "mcp_tool_call":
        return tool_line(dig(item, "tool"), dig(item, "arguments"))
    return one_line(text_of(kind).replace("_", " "))


def _transcript(output: Output, thread: str) -> str:
    return newest(os.path.join(root(output.places), "sessions"), f"-{thread}.jsonl", depth=3) if thread else ""


def _from_session(path: str) -> tuple[str, Any]:
    model, used = "", None
    for record in records(path) if path else ():
        model = text_of(dig(record, "payload", "model")) if record.get("type") == "turn_context" else model
        used = dig(record, "payload", "info", "total_token_usage") or used
    return model, used
