"""Run Codex with `codex exec --json`, which prints one event per line.

Commands can write only in the folder (`--sandbox workspace-write`), unless the user's arguments allow more. The stream
contains neither model nor cost, and an interrupted stream has no tokens either. Model and missing tokens are read from
the session's file.
"""

from __future__ import annotations

import os
from typing import Any

from learnt.clients.codex.transcript import root
from learnt.clients.kit import run as kit
from learnt.text.clean import join_messages
from learnt.text.json_values import count, dig, parsed, text_of

# These options also set the sandbox, and Codex rejects a combination of two.
_OTHER_SANDBOXES = ("-s", "--approve-for-me", "--dangerously-bypass-approvals-and-sandbox")


def build_call(request: kit.RunRequest) -> kit.Call:
    """Return the command line that starts Codex."""
    return kit.Call(
        client="codex",
        argv=(
            *kit.program(request, "codex"),
            "exec",
            *kit.option(request, "--json"),
            *kit.option(request, "--sandbox", "workspace-write", unless=_OTHER_SANDBOXES),
            *kit.option(request, "--skip-git-repo-check"),
            *kit.model_option(request, "-m"),
            *request.arguments,
            "-",
        ),
        stdin=request.prompt,
        model=request.model,
        scratch=request.scratch,
    )


def read_report(output: kit.Output) -> kit.RunReport:
    """Return the report of a run."""
    messages: list[str] = []
    usage: Any = None
    thread = complaint = ""
    for record in kit.records(output.stdout):
        kind = record.get("type")
        if kind == "thread.started":
            thread = text_of(record.get("thread_id"))
        elif kind == "item.completed" and dig(record, "item", "type") == "agent_message":
            messages.append(text_of(dig(record, "item", "text")))
        elif kind == "turn.completed":
            usage, complaint = record.get("usage"), ""
        elif kind in ("turn.failed", "error"):
            complaint = text_of(dig(record, "error", "message")) or text_of(record.get("message")) or complaint
    sessions = os.path.join(root(output.variables), "sessions")
    transcript = kit.newest(sessions, f"-{thread}.jsonl", depth=3) if thread else ""
    model, session_usage = _read_session(transcript)
    usage = usage or session_usage
    return kit.RunReport(
        text=messages[-1] if messages else "",
        said=join_messages(messages),
        model=output.call.model or model,
        tokens_in=count(dig(usage, "input_tokens")),
        tokens_cached=count(dig(usage, "cached_input_tokens")),
        tokens_out=count(dig(usage, "output_tokens")),
        transcript=transcript,
        error=kit.failure(output, complaint),
    )


def format_progress(line: str) -> str:
    """Return the agent's message, or the step that it starts."""
    record = parsed(line)
    item = record.get("item")
    kind = dig(item, "type")
    if kind == "agent_message" and record.get("type") == "item.completed":
        return kit.one_line(dig(item, "text"))
    if record.get("type") != "item.started":
        return ""
    if kind == "command_execution":
        return kit.one_line(dig(item, "command"))
    if kind == "mcp_tool_call":
        return kit.tool_line(dig(item, "tool"), dig(item, "arguments"))
    return kit.one_line(text_of(kind).replace("_", " "))


def _read_session(path: str) -> tuple[str, Any]:
    """Return the model and the token usage in a session's file."""
    model, usage = "", None
    for record in kit.records(path) if path else ():
        model = text_of(dig(record, "payload", "model")) if record.get("type") == "turn_context" else model
        usage = dig(record, "payload", "info", "total_token_usage") or usage
    return model, usage
