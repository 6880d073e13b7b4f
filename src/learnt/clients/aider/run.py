"""Run aider with `--message-file`, and read its logs: one has the conversation with the model, one tokens and cost.

aider writes both logs to the run's scratch folder. Its output is for people and is read only if the logs are missing.
aider answers its own questions with yes, but neither suggests nor runs shell commands. The user's settings decide
whether it commits.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from learnt.clients.kit import run as kit
from learnt.text.clean import join_messages
from learnt.text.json_values import amount, count, dig, total

_PROMPT, _CONVERSATION, _ANALYTICS_LOG, _HISTORY = "prompt.md", "aider.llm.log", "aider.figures.jsonl", "aider.chat.md"
_UNATTENDED = (
    "--yes-always --no-pretty --no-fancy-input --no-suggest-shell-commands --no-detect-urls --no-check-update "
    "--no-show-release-notes --no-show-model-warnings --no-analytics"
).split()
_CHATTER = ("Aider v", "Main model:", "Model:", "Weak model:", "Editor model:", "Git repo:", "Repo-map:", "Tokens:")


def build_call(request: kit.RunRequest) -> kit.Call:
    """Return the command line and the files that start aider."""
    prompt = os.path.join(request.scratch, _PROMPT)
    return kit.Call(
        client="aider",
        argv=(
            *kit.program(request, "aider"),
            "--message-file",
            prompt,
            *_UNATTENDED,
            "--llm-history-file",
            os.path.join(request.scratch, _CONVERSATION),
            "--analytics-log",
            os.path.join(request.scratch, _ANALYTICS_LOG),
            "--chat-history-file",
            os.path.join(request.scratch, _HISTORY),
            "--input-history-file",
            os.path.join(request.scratch, "aider.input"),
            *kit.model_option(request),
            *request.arguments,
        ),
        files={prompt: request.prompt},
        model=request.model,
        scratch=request.scratch,
    )


def read_report(output: kit.Output) -> kit.RunReport:
    """Return the report of a run, from aider's logs."""
    scratch = output.call.scratch
    conversation = os.path.join(scratch, _CONVERSATION)
    messages = list(_responses(conversation))
    printed = kit.plain_text(output.stdout)
    sent_messages = [
        record.get("properties")
        for record in kit.records(os.path.join(scratch, _ANALYTICS_LOG))
        if record.get("event") == "message_send"
    ]
    costs = [cost for message in sent_messages if (cost := amount(dig(message, "cost"))) is not None]
    model = re.search(r"^(?:Main model|Model): (\S+)", printed, re.MULTILINE)
    history = os.path.join(scratch, _HISTORY)
    # aider exits with 0 even if the model could not be reached, so the exit code does not show this failure.
    has_no_answer = os.path.exists(conversation) and not messages
    fallback = "" if has_no_answer else printed
    return kit.RunReport(
        text=messages[-1] if messages else fallback,
        said=join_messages(messages) or fallback,
        model=output.call.model or (model[1] if model else ""),
        cost_usd=sum(costs) if any(costs) else None,  # aider reports 0 if it does not know the price
        tokens_in=total([count(dig(message, "prompt_tokens")) for message in sent_messages]),
        tokens_out=total([count(dig(message, "completion_tokens")) for message in sent_messages]),
        transcript=history if os.path.exists(history) else "",
        error=kit.failure(output, kit.shorten(printed[-1_000:], 1_000) or "no answer" if has_no_answer else ""),
    )


def format_progress(line: str) -> str:
    """Return the line; empty if aider prints it about itself."""
    return "" if line.startswith(_CHATTER) else kit.one_line(line)


def _responses(path: str) -> Iterator[str]:
    """Yield the model's messages. Every line of the log starts with the speaker."""
    message: list[str] | None = None
    for line in kit.lines(path):
        text = line.decode("utf-8", "replace").rstrip("\r\n")
        if text.startswith(("LLM RESPONSE ", "TO LLM ")):
            if message:
                yield "\n".join(message)
            message = [] if text.startswith("LLM") else None
        elif message is not None and text.startswith("ASSISTANT"):
            message.append(text.removeprefix("ASSISTANT").removeprefix(" "))
    if message:
        yield "\n".join(message)
