"""Run Copilot CLI, which reads its prompt from stdin. `--output-format json` prints one event per line.

Edits are allowed. Everything else follows the user's arguments, such as `["--allow-tool=shell"]`. In a folder that
is not trusted, Copilot runs without the project's hooks and servers. Tokens and cost are read from the session's file,
which also has those of an interrupted run. The cost is in AI credits; a run on another provider's model has none.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from learnt.clients.copilot.transcript import root
from learnt.clients.kit import run as kit
from learnt.clients.kit.transcript import blocks
from learnt.text.clean import join_messages
from learnt.text.json_values import amount, count, dig, parsed, text_of, total

# These variables belong to a session around this one.
_OUTER_SESSION = ("COPILOT_AGENT_SESSION_ID", "COPILOT_CLI", "COPILOT_PROJECT_DIR", "COPILOT_HOOK_DIR")
# Usage is recorded in billionths of an AI credit, which costs a cent.
_USD_PER_UNIT = 0.01 / 1_000_000_000
_TOKENS = ("inputTokens", "cacheReadTokens", "outputTokens")
_MAX_DENIALS = 5


def build_call(request: kit.RunRequest) -> kit.Call:
    """Return the command line that starts Copilot."""
    return kit.Call(
        client="copilot",
        argv=(
            *kit.program(request, "copilot"),
            *kit.option(request, "--output-format", "json"),
            *kit.option(request, "--no-ask-user"),
            "--allow-tool=write",
            *kit.model_option(request),
            *request.arguments,
        ),
        stdin=request.prompt,
        without=_OUTER_SESSION,
        model=request.model,
        scratch=request.scratch,
    )


def read_report(output: kit.Output) -> kit.RunReport:
    """Return the report of a run."""
    messages: list[str] = []
    requests: dict[str, str] = {}
    denied: list[str] = []
    model = session = complaint = ""
    for record in kit.records(output.stdout):
        kind, data = record.get("type"), record.get("data")
        session = text_of(record.get("sessionId")) or session
        if record.get("agentId"):  # a sub-agent's message is not part of the agent's answer
            continue
        if kind == "assistant.message":
            model = text_of(dig(data, "model")) or model
            messages += filter(None, [text_of(dig(data, "content"))])
            requests.update(_requests(data))
        elif kind == "tool.execution_complete" and dig(data, "error", "code") == "denied":
            denied += filter(None, [requests.get(text_of(dig(data, "toolCallId")))])
        elif kind == "session.error":
            complaint = text_of(dig(data, "message"))
    transcript = _find_transcript(output, session)
    usage = _read_usage(transcript)
    return kit.RunReport(
        text=messages[-1] if messages else "",
        said=join_messages(messages),
        model=model or output.call.model,
        cost_usd=usage.pop("cost_usd"),
        **usage,
        transcript=transcript,
        denied=tuple(dict.fromkeys(denied))[:_MAX_DENIALS],
        error=kit.failure(output, complaint),
    )


def format_progress(line: str) -> str:
    """Return the agent's latest message or tool call."""
    record = parsed(line)
    if record.get("type") != "assistant.message":
        return ""
    progress = kit.one_line(text_of(dig(record, "data", "content")))
    return next(reversed([progress, *_requests(record.get("data")).values()]))


def _requests(data: object) -> dict[str, str]:
    """Return the tool calls in a message, by their ids."""
    calls = blocks(dig(data, "toolRequests"))
    return {text_of(call.get("toolCallId")): kit.tool_line(call.get("name"), call.get("arguments")) for call in calls}


def _find_transcript(output: kit.Output, session: str) -> str:
    folder = root(output.variables)
    if not folder or not session.strip(".") or os.path.basename(session) != session:
        return ""
    path = os.path.join(folder, "session-state", session, "events.jsonl")
    return path if os.path.isfile(path) else ""


def _read_usage(transcript: str) -> dict[str, Any]:
    """Return the tokens and the cost in a session's file."""
    usages: list[Mapping[str, Any]] = []
    for record in kit.records(transcript) if transcript else ():
        usage = dig(record, "data", "usage")
        if record.get("type") == "session.usage_record" and isinstance(usage, Mapping):
            usages.append(usage)
    read, cached, written = (total([count(usage.get(key)) for usage in usages]) for key in _TOKENS)
    return {"tokens_in": read, "tokens_cached": cached, "tokens_out": written, "cost_usd": _cost(usages)}


def _cost(usages: list[Mapping[str, Any]]) -> float | None:
    units = [amount(dig(usage, "copilotUsage", "totalNanoAiu")) for usage in usages]
    known = [unit for unit in units if unit]
    return sum(known) * _USD_PER_UNIT if known else None
