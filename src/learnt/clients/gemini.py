"""Gemini CLI: without a terminal it reads its prompt from stdin; `-o stream-json` prints one event a line.

Edits are approved, other tools follow the user's own policy. In a folder that was never trusted it refuses to work
(exit code 55) and says how to change that; trusting is the user's decision, not ours. A trusted project is enough
for the worktrees of its tasks, which lie below it. It tells no cost.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
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
    total,
    unless,
    with_model,
)


def call(request: Request) -> Call:
    """Return how Gemini CLI is started for this request."""
    return Call(
        client="gemini",
        argv=(
            *program(request, "gemini"),
            *unless(request.arguments, ("-o", "--output-format"), ("--output-format", "stream-json")),
            *unless(request.arguments, ("--approval-mode", "-y", "--yolo"), ("--approval-mode", "auto_edit")),
            *with_model(request, "--model", "-m"),
            *request.arguments,
        ),
        stdin=request.prompt,
        model=request.model,
        scratch=request.scratch,
    )


def read(output: Output) -> Answer:
    """Return what Gemini CLI told, as a stream of events or as one object."""
    said: list[str] = []
    in_message = False
    session = complaint = ""
    stats: Any = None
    for found in records(output.stdout):
        session = text_of(found.get("session_id")) or session
        stats = found.get("stats") or stats
        complaint = text_of(dig(found, "error", "message")) or complaint
        if found.get("type") == "message" and found.get("role") == "assistant":
            content = text_of(found.get("content"))
            # A message comes in pieces; whatever stands between two pieces parts two messages.
            said[-1:] = [said[-1] + content] if in_message else [*said[-1:], content]
            in_message = bool(found.get("delta"))
        else:
            in_message = False
            if "type" not in found and text_of(found.get("response")):
                said.append(found["response"])
    models = _models(stats)
    return Answer(
        text=said[-1] if said else "",
        said=joined(said),
        model=output.call.model or max(models, key=lambda name: sum(models[name]), default=""),
        tokens_in=total([tokens[0] for tokens in models.values()]),
        tokens_cached=total([tokens[1] for tokens in models.values()]),
        tokens_out=total([tokens[2] for tokens in models.values()]),
        transcript=_transcript(output, session),
        error=failure(output, complaint),
    )


def progress(line: str) -> str:
    """Return the agent's latest words or tool call."""
    found = record(line)
    if found.get("type") == "tool_use":
        return tool_line(found.get("tool_name"), found.get("parameters"))
    if found.get("type") == "message" and found.get("role") == "assistant":
        return one_line(found.get("content"))
    return ""


def _models(stats: object) -> dict[str, tuple[int, int, int]]:
    """Return what each model read, read from a cache, and wrote; thinking counts as writing."""
    models = dig(stats, "models")
    found = {}
    for name, told in models.items() if isinstance(models, Mapping) else ():
        tokens = dig(told, "tokens")
        if isinstance(tokens, Mapping):  # as one object
            figures = (tokens.get("prompt"), tokens.get("cached"), total([*map(count, _written(tokens))]))
        else:
            figures = (dig(told, "input_tokens"), dig(told, "cached"), _rest(told))
        read, cached, written = (count(figure) or 0 for figure in figures)
        found[str(name)] = (read, cached, written)
    return found


def _written(tokens: Mapping[str, Any]) -> tuple[object, object]:
    return tokens.get("candidates"), tokens.get("thoughts")


def _rest(told: object) -> int | None:
    # The stream counts thinking in the total only.
    all_of_it, read = count(dig(told, "total_tokens")), count(dig(told, "input_tokens"))
    written = count(dig(told, "output_tokens"))
    return max(written or 0, all_of_it - read) if all_of_it is not None and read is not None else written


def _transcript(output: Output, session: str) -> str:
    home = output.place("GEMINI_CLI_HOME") or output.place("HOME")
    return newest(os.path.join(home, ".gemini", "tmp"), f"-{session[:8]}.jsonl", depth=2) if session else ""
