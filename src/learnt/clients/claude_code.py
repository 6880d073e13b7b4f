"""Claude Code: `claude -p` with its stream of JSON, which ends with a result that tells cost and tokens.

Edits are accepted, everything else follows the user's own permissions; more is a matter of `arguments`, such as
`["--allowedTools", "Bash"]`. A run that was cut short has no result: its text and its tokens come from its messages.
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
    amount,
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

# What an outer session of Claude Code leaves in the environment; an inner one with these refuses to start.
_OUTER_SESSION = (
    "CLAUDECODE",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_PID",
    "CLAUDE_ENV_FILE",
    "CLAUDE_PROJECT_DIR",
)
_DENIALS_TOLD = 5


def call(request: Request) -> Call:
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


def read(output: Output) -> Answer:
    """Return what Claude Code told: the result, or what its messages show when there is none."""
    said: list[str] = []
    usages: dict[str, Any] = {}
    result: dict[str, Any] = {}
    model = session = ""
    for found in records(output.stdout):
        session = text_of(found.get("session_id")) or session
        kind = found.get("type")
        if kind == "system":
            model = text_of(found.get("model")) or model
        elif kind == "assistant":
            # One message comes in several records, each with the figures of the whole.
            usages[text_of(dig(found, "message", "id")) or str(len(usages))] = dig(found, "message", "usage")
            if not found.get("parent_tool_use_id"):  # a sub-agent's words are not the agent's
                said += _texts(found)
                model = _real(dig(found, "message", "model")) or model
        elif kind == "result":
            result = found
    text = text_of(result.get("result")) or (said[-1] if said else "")
    if text and text not in said:
        said.append(text)
    figures = _of_models(result.get("modelUsage")) or _of_usages([result.get("usage")] if result else usages.values())
    return Answer(
        text=text,
        said=joined(said),
        model=model or _dearest(result.get("modelUsage")) or output.call.model,
        cost_usd=amount(result.get("total_cost_usd")),
        **figures,
        transcript=_transcript(output, session),
        denied=_denied(result.get("permission_denials")),
        error=failure(output, _complaint(result)),
    )


def progress(line: str) -> str:
    """Return the agent's latest words or tool call."""
    found = record(line)
    if found.get("type") != "assistant":
        return ""
    shown = ""
    for block in _blocks(found):
        if block.get("type") == "tool_use":
            shown = tool_line(block.get("name"), block.get("input"))
        elif block.get("type") == "text":
            shown = one_line(block.get("text"))
    return shown


def _blocks(found: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    content = dig(found, "message", "content")
    return [block for block in content if isinstance(block, Mapping)] if isinstance(content, list) else []


def _texts(found: Mapping[str, Any]) -> list[str]:
    return [text_of(block.get("text")) for block in _blocks(found) if block.get("type") == "text"]


def _real(model: object) -> str:
    name = text_of(model)
    return "" if name.startswith("<") else name  # `<synthetic>` stands for an error of the service


def _of_models(usage: object) -> dict[str, Any]:
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


def _of_usages(usages: Any) -> dict[str, Any]:
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


def _denied(denials: object) -> tuple[str, ...]:
    listed = denials if isinstance(denials, list) else []
    told = [tool_line(one.get("tool_name"), one.get("tool_input")) for one in listed if isinstance(one, Mapping)]
    return tuple(dict.fromkeys(told))[:_DENIALS_TOLD]


def _transcript(output: Output, session: str) -> str:
    projects = os.path.join(output.place("CLAUDE_CONFIG_DIR", ".claude"), "projects")
    return newest(projects, f"{session}.jsonl", depth=1) if session else ""
