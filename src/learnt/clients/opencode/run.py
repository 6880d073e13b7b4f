"""Run opencode with `opencode run --format json`, which prints one event per line, with each step's tokens and cost.

We set the session's title. Otherwise opencode sends the whole prompt to a model again to generate one, and does not
report what that costs. The stream does not contain the model.
"""

from __future__ import annotations

import os

from learnt.clients.kit import run as kit
from learnt.clients.opencode.transcript import database_path
from learnt.text.clean import join_messages
from learnt.text.json_values import amount, count, dig, parsed, text_of, total


def build_call(request: kit.RunRequest) -> kit.Call:
    """Return the command line that starts opencode."""
    return kit.Call(
        client="opencode",
        argv=(
            *kit.program(request, "opencode"),
            "run",
            *kit.option(request, "--format", "json"),
            *kit.option(request, "--title", "learnt work"),
            *kit.model_option(request, "-m"),
            *request.arguments,
        ),
        stdin=request.prompt,
        model=request.model,
        scratch=request.scratch,
    )


def read_report(output: kit.Output) -> kit.RunReport:
    """Return the report of a run, with its messages and the totals over its steps."""
    parts_by_message: dict[str, list[str]] = {}
    read_tokens, cached, written = [], [], []
    costs: list[float] = []
    session = complaint = ""
    for record in kit.records(output.stdout):
        session = text_of(record.get("sessionID")) or session
        kind, part = record.get("type"), record.get("part")
        if kind == "text":
            parts_by_message.setdefault(text_of(dig(part, "messageID")), []).append(text_of(dig(part, "text")))
        elif kind == "step_finish":
            tokens = dig(part, "tokens")
            cached.append(count(dig(tokens, "cache", "read")))
            read_tokens += [count(dig(tokens, "input")), count(dig(tokens, "cache", "write")), cached[-1]]
            written += [count(dig(tokens, "output")), count(dig(tokens, "reasoning"))]
            cost = amount(dig(part, "cost"))
            costs += [] if cost is None else [cost]
        elif kind == "error":
            error = record.get("error")
            complaint = text_of(dig(error, "data", "message")) or text_of(dig(error, "name")) or "opencode failed"
    messages = [join_messages(parts) for parts in parts_by_message.values()]
    return kit.RunReport(
        text=messages[-1] if messages else "",
        said=join_messages(messages),
        model=output.call.model,
        cost_usd=sum(costs) if costs else None,
        tokens_in=total(read_tokens),
        tokens_cached=total(cached),
        tokens_out=total(written),
        transcript=_transcript(output, session),
        error=kit.failure(output, complaint),
    )


def format_progress(line: str) -> str:
    """Return the agent's latest message or tool call."""
    record = parsed(line)
    part = record.get("part")
    if record.get("type") == "tool_use":
        return kit.tool_line(dig(part, "tool"), dig(part, "state", "input"))
    if record.get("type") == "text":
        return kit.one_line(dig(part, "text"))
    return ""


def _transcript(output: kit.Output, session: str) -> str:
    """Return the path of the database, a `#` and the session."""
    database = database_path(output.variables)
    return f"{database}#{session}" if session and database and os.path.exists(database) else ""
