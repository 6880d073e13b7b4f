"""Run opencode with `opencode run --format json`, which prints one event per line, with tokens and cost of each step.

The session gets a title from us: otherwise opencode sends the whole prompt to a model again to make one, and does not
report the cost. The stream does not contain the model.
"""

from __future__ import annotations

import os

from learnt.clients.kit import run as kit
from learnt.clients.opencode.transcript import database_path
from learnt.text.json_values import amount, count, dig, parsed, text_of, total


def call(request: kit.RunRequest) -> kit.Call:
    """Return how opencode is started for this request."""
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


def read(output: kit.Output) -> kit.RunReport:
    """Return the report of a run: the parts of its messages, and the sums over its steps."""
    messages: dict[str, list[str]] = {}
    read_, cached, written = [], [], []
    costs: list[float] = []
    session = complaint = ""
    for record in kit.records(output.stdout):
        session = text_of(record.get("sessionID")) or session
        kind, part = record.get("type"), record.get("part")
        if kind == "text":
            messages.setdefault(text_of(dig(part, "messageID")), []).append(text_of(dig(part, "text")))
        elif kind == "step_finish":
            tokens = dig(part, "tokens")
            cached.append(count(dig(tokens, "cache", "read")))
            read_ += [count(dig(tokens, "input")), count(dig(tokens, "cache", "write")), cached[-1]]
            written += [count(dig(tokens, "output")), count(dig(tokens, "reasoning"))]
            cost = amount(dig(part, "cost"))
            costs += [] if cost is None else [cost]
        elif kind == "error":
            error = record.get("error")
            complaint = text_of(dig(error, "data", "message")) or text_of(dig(error, "name")) or "opencode failed"
    said = [kit.join_messages(parts) for parts in messages.values()]
    return kit.RunReport(
        text=said[-1] if said else "",
        said=kit.join_messages(said),
        model=output.call.model,
        cost_usd=sum(costs) if costs else None,
        tokens_in=total(read_),
        tokens_cached=total(cached),
        tokens_out=total(written),
        transcript=_transcript(output, session),
        error=kit.failure(output, complaint),
    )


def progress(line: str) -> str:
    """Return the agent's latest words or tool call."""
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
