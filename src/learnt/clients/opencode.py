"""opencode: `opencode run --format json` prints one event a line, with tokens and cost at the end of each step.

The session gets a title from us: making one up would send the whole prompt to a model once more, at a cost that is
told nowhere. The stream does not name the model.
"""

from __future__ import annotations

import os

from learnt.clients.shapes import (
    Answer,
    Call,
    Output,
    Request,
    amount,
    count,
    dig,
    failure,
    joined,
    one_line,
    program,
    record,
    records,
    text_of,
    tool_line,
    total,
    unless,
    with_model,
)


def call(request: Request) -> Call:
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


def read(output: Output) -> Answer:
    """Return what opencode told: the parts of its messages, and the sum over its steps."""
    messages: dict[str, list[str]] = {}
    read_, cached, written = [], [], []
    costs: list[float] = []
    session = complaint = ""
    for found in records(output.stdout):
        session = text_of(found.get("sessionID")) or session
        kind, part = found.get("type"), found.get("part")
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
            error = found.get("error")
            complaint = text_of(dig(error, "data", "message")) or text_of(dig(error, "name")) or "opencode failed"
    said = [joined(parts) for parts in messages.values()]
    return Answer(
        text=said[-1] if said else "",
        said=joined(said),
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
    found = record(line)
    part = found.get("part")
    if found.get("type") == "tool_use":
        return tool_line(dig(part, "tool"), dig(part, "state", "input"))
    if found.get("type") == "text":
        return one_line(dig(part, "text"))
    return ""


def _transcript(output: Output, session: str) -> str:
    """Return the database that holds all sessions, and after a `#` the one that is meant."""
    database = os.path.join(output.place("XDG_DATA_HOME", ".local", "share"), "opencode", "opencode.db")
    return f"{database}#{session}" if session and os.path.exists(database) else ""
