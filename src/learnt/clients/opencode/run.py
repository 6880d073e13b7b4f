"""opencode: `opencode run --format json` prints one event a line, with tokens and cost at the end of each step.

The session gets a title from us: otherwise opencode sends the whole prompt to a model once more to invent one, and
does not report the cost. The stream does not name the model.
"""

from __future__ import annotations

import os

from learnt.clients.kit.run import (
    Call,
    Output,
    RunReport,
    RunRequest,
    failure,
    join_messages,
    one_line,
    parse_record,
    program,
    records,
    tool_line,
    unless,
    with_model,
)
from learnt.clients.opencode.transcript import database_path
from learnt.text.json_values import amount, count, dig, text_of, total


def call(request: RunRequest) -> Call:
    """Return how opencode is started for this request."""
    return Call(
        client="opencode",
        argv=(
            *program(request, "opencode"),
            "run",
            *unless(request.arguments, ("--format",), ("--format", "json")),
            *unless(request.arguments, ("--title",), ("--title", "learnt work")),
            *with_model(request, "--model", "-m"),
            *request.arguments,
        ),
        stdin=request.prompt,
        model=request.model,
        scratch=request.scratch,
    )


def read(output: Output) -> RunReport:
    """Return what opencode reports: the parts of its messages, and the sum over its steps."""
    messages: dict[str, list[str]] = {}
    read_, cached, written = [], [], []
    costs: list[float] = []
    session = complaint = ""
    for record in records(output.stdout):
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
    said = [join_messages(parts) for parts in messages.values()]
    return RunReport(
        text=said[-1] if said else "",
        said=join_messages(said),
        model=output.call.model,
        cost_usd=sum(costs) if costs else None,
        tokens_in=total(read_),
        tokens_cached=total(cached),
        tokens_out=total(written),
        transcript=_transcript(output, session),
        error=failure(output, complaint),
    )


def progress(line: str) -> str:
    """Return the agent's latest words or tool call."""
    record = parse_record(line)
    part = record.get("part")
    if record.get("type") == "tool_use":
        return tool_line(dig(part, "tool"), dig(part, "state", "input"))
    if record.get("type") == "text":
        return one_line(dig(part, "text"))
    return ""


def _transcript(output: Output, session: str) -> str:
    """Return the database that holds all sessions, and after a `#` the one that is meant."""
    database = database_path(output.places)
    return f"{database}#{session}" if session and database and os.path.exists(database) else ""
