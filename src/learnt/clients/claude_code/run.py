"""Run Claude Code with `claude -p`, and read its JSON stream, which ends with a result that reports cost and tokens.

Edits are accepted. Everything else follows the user's permissions, or `arguments` such as `["--allowedTools", "Bash"]`.
An interrupted run has no result, so its text and tokens are read from its messages.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from learnt.clients.claude_code.transcript import real_model, root
from learnt.clients.kit import run as kit
from learnt.clients.kit.transcript import blocks
from learnt.text.clean import join_messages
from learnt.text.json_values import amount, count, dig, parsed, text_of, total

# Variables that a running session sets. They are removed, because Claude Code does not start inside another session.
_OUTER_SESSION = tuple(
    "CLAUDECODE CLAUDE_CODE_ENTRYPOINT CLAUDE_CODE_SESSION_ID CLAUDE_PID CLAUDE_ENV_FILE CLAUDE_PROJECT_DIR".split()
)
# Input tokens, tokens written to the cache, tokens read from the cache, and output tokens.
_BY_MODEL = ("inputTokens", "cacheCreationInputTokens", "cacheReadInputTokens", "outputTokens")
_BY_MESSAGE = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
_MAX_DENIALS = 5


def build_call(request: kit.RunRequest) -> kit.Call:
    """Return the command line that starts Claude Code."""
    return kit.Call(
        client="claude",
        argv=(
            *kit.program(request, "claude"),
            "-p",
            *kit.option(request, "--output-format", "stream-json", "--verbose"),
            *kit.option(request, "--permission-mode", "acceptEdits", unless=("--dangerously-skip-permissions",)),
            *kit.model_option(request),
            *request.arguments,
        ),
        stdin=request.prompt,
        without=_OUTER_SESSION,
        model=request.model,
        scratch=request.scratch,
    )


def read_report(output: kit.Output) -> kit.RunReport:
    """Return the report of a run, from its result, or from its messages if there is no result."""
    messages: list[str] = []
    usages: dict[str, Any] = {}
    result: dict[str, Any] = {}
    model = session = ""
    for record in kit.records(output.stdout):
        session = text_of(record.get("session_id")) or session
        kind = record.get("type")
        if kind == "system":
            model = text_of(record.get("model")) or model
        elif kind == "assistant":
            # A message can come in several records, each with the whole message's usage, so only the last one is used.
            usages[text_of(dig(record, "message", "id")) or str(len(usages))] = dig(record, "message", "usage")
            if not record.get("parent_tool_use_id"):  # a sub-agent's message is not part of the agent's answer
                messages += _texts(record)
                model = real_model(dig(record, "message", "model")) or model
        elif kind == "result":
            result = record
    text = text_of(result.get("result")) or (messages[-1] if messages else "")
    if text and text not in messages:
        messages.append(text)
    return kit.RunReport(
        text=text,
        said=join_messages(messages),
        model=model or _most_expensive_model(result.get("modelUsage")) or output.call.model,
        cost_usd=amount(result.get("total_cost_usd")),
        **_count_tokens(result, usages.values()),
        transcript=kit.newest(_projects(output), f"{session}.jsonl", depth=1) if session else "",
        denied=_denials(result.get("permission_denials")),
        error=kit.failure(output, _complaint(result)),
    )


def format_progress(line: str) -> str:
    """Return the agent's latest message or tool call."""
    record = parsed(line)
    if record.get("type") != "assistant":
        return ""
    progress = ""
    for block in blocks(dig(record, "message", "content")):
        if block.get("type") == "tool_use":
            progress = kit.tool_line(block.get("name"), block.get("input"))
        elif block.get("type") == "text":
            progress = kit.one_line(block.get("text"))
    return progress


def _texts(record: Mapping[str, Any]) -> list[str]:
    content = blocks(dig(record, "message", "content"))
    return [text_of(block.get("text")) for block in content if block.get("type") == "text"]


def _count_tokens(result: Mapping[str, Any], usages: Iterable[Any]) -> dict[str, Any]:
    """Return the tokens of a run, from its usage by model, its result or its messages."""
    by_model = result.get("modelUsage")
    if isinstance(by_model, Mapping) and by_model:
        usages, keys = by_model.values(), _BY_MODEL
    else:
        usages, keys = [result.get("usage")] if result else usages, _BY_MESSAGE
    fresh, written, cached, out = (total([count(dig(usage, key)) for usage in usages]) for key in keys)
    return {"tokens_in": total([fresh, written, cached]), "tokens_cached": cached, "tokens_out": out}


def _most_expensive_model(usage: object) -> str:
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
    calls = [kit.tool_line(call.get("tool_name"), call.get("tool_input")) for call in blocks(denials)]
    return tuple(dict.fromkeys(calls))[:_MAX_DENIALS]


def _projects(output: kit.Output) -> str:
    return os.path.join(root(output.variables), "projects")
