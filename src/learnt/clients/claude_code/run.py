"""Claude Code: `claude -p` with its stream of JSON, which ends with a result that reports cost and tokens.

Edits are accepted, everything else follows the user's own permissions; more is a matter of `arguments`, such as
`["--allowedTools", "Bash"]`. A run that was cut short has no result: its text and its tokens come from its messages.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from learnt.clients.claude_code.transcript import root
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
from learnt.text.json_values import amount, count, dig, text_of, total

# What an outer session of Claude Code leaves in the environment; an inner one with these refuses to start.
_OUTER_SESSION = (
    "CLAUDECODE",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_PID",
    "CLAUDE_ENV_FILE",
    "CLAUDE_PROJECT_DIR",
)
_MOST_DENIALS = 5


def call(request: RunRequest) -> Call:
    """Return how Claude Code is started for this request."""
    return Call(
        client="claude",
        argv=(
            *program(request, "claude"),
            "-p",
            *unless(request.arguments, ("--output-format",), ("--output-format", "stream-json", "--verbose")),
            *unless(
                request.arguments,
                ("--permission-mode", "--dangerously-skip-permissions"),
                ("--permission-mode", "acceptEdits"),
            ),
            *with_model(request, "--model"),
            *request.arguments,
        ),
        stdin=request.prompt,
        without=_OUTER_SESSION,
        model=request.model,
        scratch=request.scratch,
    )


def read(output: Output) -> RunReport:
    """Return what Claude Code reports: its result or, without one, what its messages show."""
    said: list[str] = []
    usages: dict[str, Any] = {}
    result: dict[str, Any] = {}
    model = session = ""
    for record in records(output.stdout):
        session = text_of(record.get("session_id")) or session
        kind = record.get("type")
        if kind == "system":
            model = text_of(record.get("model")) or model
        elif kind == "assistant":
            # One message comes in several records, each with the figures of the whole.
            usages[text_of(dig(record, "message", "id")) or str(len(usages))] = dig(record, "message", "usage")
            if not record.get("parent_tool_use_id"):  # a sub-agent's words are not the agent's
                said += _texts(record)
                model = _real(dig(record, "message", "model")) or model
        elif kind == "result":
            result = record
    text = text_of(result.get("result")) or (said[-1] if said else "")
    if text and text not in said:
        said.append(text)
    figures = _figures_by_model(result.get("modelUsage")) or _figures_of_usages(
        [result.get("usage")] if result else usages.values()
    )
    return RunReport(
        text=text,
        said=join_messages(said),
        model=model or _dearest(result.get("modelUsage")) or output.call.model,
        cost_usd=amount(result.get("total_cost_usd")),
        **figures,
        transcript=_transcript(output, session),
        denied=_denials(result.get("permission_denials")),
        error=failure(output, _complaint(result)),
    )


def progress(line: str) -> str:
    """Return the agent's latest words or tool call."""
    record = parse_record(line)
    if record.get("type") != "assistant":
        return ""
    shown = ""
    for block in _blocks(record):
        if block.get("type") == "tool_use":
            shown = tool_line(block.get("name"), block.get("input"))
        elif block.get("type") == "text":
            shown = one_line(block.get("text"))
    return shown


def _blocks(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    content = dig(record, "message", "content")
    return [block for block in content if isinstance(block, Mapping)] if isinstance(content, list) else []


def _texts(record: Mapping[str, Any]) -> list[str]:
    return [text_of(block.get("text")) for block in _blocks(record) if block.get("type") == "text"]


def _real(model: object) -> str:
    name = text_of(model)
    return "" if name.startswith("<") else name  # `<synthetic>` stands for an error of the service


def _figures_by_model(usage: object) -> dict[str, Any]:
    if not isinstance(usage, Mapping) or not usage:
        return {}
    return _figures(
        [
            (
                count(dig(each, "inputTokens")),
                count(dig(each, "cacheCreationInputTokens")),
                count(dig(each, "cacheReadInputTokens")),
                count(dig(each, "outputTokens")),
            )
            for each in usage.values()
        ]
    )


def _figures_of_usages(usages: Any) -> dict[str, Any]:
    return _figures(
        [
            (
                count(dig(each, "input_tokens")),
                count(dig(each, "cache_creation_input_tokens")),
                count(dig(each, "cache_read_input_tokens")),
                count(dig(each, "output_tokens")),
            )
            for each in usages
        ]
    )


def _figures(rows: list[tuple[int | None, int | None, int | None, int | None]]) -> dict[str, Any]:
    fresh, written, cached, out = (total([row[place] for row in rows]) for place in range(4))
    return {"tokens_in": total([fresh, written, cached]), "tokens_cached": cached, "tokens_out": out}


def _dearest(usage: object) -> str:
    if not isinstance(usage, Mapping) or not usage:
        return ""
    return text_of(max(usage, key=lambda name: amount(dig(usage[name], "costUSD")) or 0.0))


def _complaint(result: Mapping[str, Any]) -> str:
    if not result.get("is_error"):
        return ""
    errors = result.get("errors")
    listed = "; ".join(map(str, errors)) if isinstance(errors, list) else ""
    return text_of(result.get("result")) or listed or text_of(result.get("subtype")) or "Claude Code reported an error"


def _denials(denials: object) -> tuple[str, ...]:
    listed = denials if isinstance(denials, list) else []
    calls = [tool_line(call.get("tool_name"), call.get("tool_input")) for call in listed if isinstance(call, Mapping)]
    return tuple(dict.fromkeys(calls))[:_MOST_DENIALS]


def _transcript(output: Output, session: str) -> str:
    return newest(os.path.join(root(output.places), "projects"), f"{session}.jsonl", depth=1) if session else ""
