"""Run Gemini CLI, which reads its prompt from stdin without a terminal; `-o stream-json` prints one event per line.

Edits are approved, other tools follow the user's policy. In an untrusted folder it refuses to work (exit code 55) and
says how to change that; trust is the user's decision. Trusting the project is enough for the worktrees of its tasks,
which are below it. It reports no cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from learnt.clients.gemini.transcript import root
from learnt.clients.kit import run as kit
from learnt.text.json_values import count, dig, parsed, text_of, total


def call(request: kit.RunRequest) -> kit.Call:
    """Return how Gemini CLI is started for this request."""
    return kit.Call(
        client="gemini",
        argv=(
            *kit.program(request, "gemini"),
            *kit.option(request, "--output-format", "stream-json", unless=("-o",)),
            *kit.option(request, "--approval-mode", "auto_edit", unless=("-y", "--yolo")),
            *kit.model_option(request, "-m"),
            *request.arguments,
        ),
        stdin=request.prompt,
        model=request.model,
        scratch=request.scratch,
    )


def read(output: kit.Output) -> kit.RunReport:
    """Return the report of a run, from a stream of events or one object."""
    said: list[str] = []
    in_message = False
    session = complaint = ""
    stats: Any = None
    for record in kit.records(output.stdout):
        session = text_of(record.get("session_id")) or session
        stats = record.get("stats") or stats
        complaint = text_of(dig(record, "error", "message")) or complaint
        if record.get("type") == "message" and record.get("role") == "assistant":
            content = text_of(record.get("content"))
            # A message comes in pieces; any other record ends it.
            said[-1:] = [said[-1] + content] if in_message else [*said[-1:], content]
            in_message = bool(record.get("delta"))
        else:
            in_message = False
            if "type" not in record and text_of(record.get("response")):
                said.append(record["response"])
    models = _models(stats)
    return kit.RunReport(
        text=said[-1] if said else "",
        said=kit.join_messages(said),
        model=output.call.model or max(models, key=lambda name: sum(models[name]), default=""),
        tokens_in=total([tokens[0] for tokens in models.values()]),
        tokens_cached=total([tokens[1] for tokens in models.values()]),
        tokens_out=total([tokens[2] for tokens in models.values()]),
        transcript=kit.newest(root(output.variables), f"-{session[:8]}.jsonl", depth=2) if session else "",
        error=kit.failure(output, complaint),
    )


def progress(line: str) -> str:
    """Return the agent's latest words or tool call."""
    record = parsed(line)
    if record.get("type") == "tool_use":
        return kit.tool_line(record.get("tool_name"), record.get("parameters"))
    if record.get("type") == "message" and record.get("role") == "assistant":
        return kit.one_line(record.get("content"))
    return ""


def _models(stats: object) -> dict[str, tuple[int, int, int]]:
    """Return the tokens that each model read, read from a cache, and wrote; thinking counts as written."""
    models = dig(stats, "models")
    figures_of = {}
    for name, model in models.items() if isinstance(models, Mapping) else ():
        tokens = dig(model, "tokens")
        if isinstance(tokens, Mapping):  # in one object, not in a stream
            figures = (
                tokens.get("prompt"),
                tokens.get("cached"),
                total([count(tokens.get("candidates")), count(tokens.get("thoughts"))]),
            )
        else:
            figures = (dig(model, "input_tokens"), dig(model, "cached"), _written_in_stream(model))
        read, cached, written = (count(figure) or 0 for figure in figures)
        figures_of[str(name)] = (read, cached, written)
    return figures_of


def _written_in_stream(model: object) -> int | None:
    # The stream counts thinking only in the total.
    all_of_it, read = count(dig(model, "total_tokens")), count(dig(model, "input_tokens"))
    written = count(dig(model, "output_tokens"))
    return max(written or 0, all_of_it - read) if all_of_it is not None and read is not None else written
