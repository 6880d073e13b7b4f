"""Run Gemini CLI, which reads its prompt from stdin without a terminal. `-o stream-json` prints one event per line.

Edits are approved, and other tools follow the user's policy. In an untrusted folder, Gemini CLI exits with code 55 and
says how to trust the folder; that decision is left to the user. Trusting the project is enough for its tasks'
worktrees, which are below it. Gemini CLI does not report the cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from learnt.clients.gemini.transcript import root
from learnt.clients.kit import run as kit
from learnt.text.clean import join_messages
from learnt.text.json_values import count, dig, parsed, text_of, total


def build_call(request: kit.RunRequest) -> kit.Call:
    """Return the command line that starts Gemini CLI."""
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


def read_report(output: kit.Output) -> kit.RunReport:
    """Return the report of a run, from a stream of events or from a single object."""
    messages: list[str] = []
    in_message = False
    session = complaint = ""
    stats: Any = None
    for record in kit.records(output.stdout):
        session = text_of(record.get("session_id")) or session
        stats = record.get("stats") or stats
        complaint = text_of(dig(record, "error", "message")) or complaint
        if record.get("type") == "message" and record.get("role") == "assistant":
            content = text_of(record.get("content"))
            # A message comes in pieces, and any other record ends it.
            messages[-1:] = [messages[-1] + content] if in_message else [*messages[-1:], content]
            in_message = bool(record.get("delta"))
        else:
            in_message = False
            if "type" not in record and text_of(record.get("response")):
                messages.append(record["response"])
    models = _models(stats)
    return kit.RunReport(
        text=messages[-1] if messages else "",
        said=join_messages(messages),
        model=output.call.model or max(models, key=lambda name: sum(models[name]), default=""),
        tokens_in=total([tokens[0] for tokens in models.values()]),
        tokens_cached=total([tokens[1] for tokens in models.values()]),
        tokens_out=total([tokens[2] for tokens in models.values()]),
        transcript=kit.newest(root(output.variables), f"-{session[:8]}.jsonl", depth=2) if session else "",
        error=kit.failure(output, complaint),
    )


def format_progress(line: str) -> str:
    """Return the agent's latest message or tool call."""
    record = parsed(line)
    if record.get("type") == "tool_use":
        return kit.tool_line(record.get("tool_name"), record.get("parameters"))
    if record.get("type") == "message" and record.get("role") == "assistant":
        return kit.one_line(record.get("content"))
    return ""


def _models(stats: object) -> dict[str, tuple[int, int, int]]:
    """Return each model's input, cached and output tokens. Output includes thinking."""
    models = dig(stats, "models")
    tokens_by_model = {}
    for name, model in models.items() if isinstance(models, Mapping) else ():
        tokens = dig(model, "tokens")
        if isinstance(tokens, Mapping):  # the format of a single object; a stream has no `tokens`
            counts = (
                tokens.get("prompt"),
                tokens.get("cached"),
                total([count(tokens.get("candidates")), count(tokens.get("thoughts"))]),
            )
        else:
            counts = (dig(model, "input_tokens"), dig(model, "cached"), _count_written(model))
        read, cached, written = (count(value) or 0 for value in counts)
        tokens_by_model[str(name)] = (read, cached, written)
    return tokens_by_model


def _count_written(model: object) -> int | None:
    # In a stream, only the total includes thinking.
    sum_of_all, read = count(dig(model, "total_tokens")), count(dig(model, "input_tokens"))
    written = count(dig(model, "output_tokens"))
    return max(written or 0, sum_of_all - read) if sum_of_all is not None and read is not None else written
