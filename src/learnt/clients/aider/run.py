"""Run aider with `--message-file`, and read its files: the conversation with the model, a log with tokens and cost.

Both are in the scratch folder of the run. aider's output is for people; it is read only if the files are missing. Every
question is answered with yes, but shell commands are neither suggested nor run. Whether aider commits is the user's
setting.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from learnt.clients.kit import run as kit
from learnt.text.json_values import amount, count, dig, total

_PROMPT, _CONVERSATION, _FIGURES, _HISTORY = "prompt.md", "aider.llm.log", "aider.figures.jsonl", "aider.chat.md"
_QUIET = (
    "--yes-always --no-pretty --no-fancy-input --no-suggest-shell-commands --no-detect-urls --no-check-update "
    "--no-show-release-notes --no-show-model-warnings --no-analytics"
).split()
_CHATTER = ("Aider v", "Main model:", "Model:", "Weak model:", "Editor model:", "Git repo:", "Repo-map:", "Tokens:")


def call(request: kit.RunRequest) -> kit.Call:
    """Return how aider is started for this request."""
    prompt = os.path.join(request.scratch, _PROMPT)
    return kit.Call(
        client="aider",
        argv=(
            *kit.program(request, "aider"),
            "--message-file",
            prompt,
            *_QUIET,
            "--llm-history-file",
            os.path.join(request.scratch, _CONVERSATION),
            "--analytics-log",
            os.path.join(request.scratch, _FIGURES),
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


def read(output: kit.Output) -> kit.RunReport:
    """Return the report of a run, from aider's files."""
    scratch = output.call.scratch
    conversation = os.path.join(scratch, _CONVERSATION)
    said = list(_responses(conversation))
    printed = kit.plain_text(output.stdout)
    sent = [
        record.get("properties")
        for record in kit.records(os.path.join(scratch, _FIGURES))
        if record.get("event") == "message_send"
    ]
    costs = [cost for message in sent if (cost := amount(dig(message, "cost"))) is not None]
    model = re.search(r"^(?:Main model|Model): (\S+)", printed, re.MULTILINE)
    history = os.path.join(scratch, _HISTORY)
    # aider exits with 0 even if the model could not be reached.
    unanswered = os.path.exists(conversation) and not said
    fallback = "" if unanswered else printed
    return kit.RunReport(
        text=said[-1] if said else fallback,
        said=kit.join_messages(said) or fallback,
        model=output.call.model or (model[1] if model else ""),
        cost_usd=sum(costs) if any(costs) else None,  # 0 means a model without a price
        tokens_in=total([count(dig(message, "prompt_tokens")) for message in sent]),
        tokens_out=total([count(dig(message, "completion_tokens")) for message in sent]),
        transcript=history if os.path.exists(history) else "",
        error=kit.failure(output, kit.shorten(printed[-1_000:], 1_000) or "no answer" if unanswered else ""),
    )


def progress(line: str) -> str:
    """Return the line, unless it is about aider itself."""
    return "" if line.startswith(_CHATTER) else kit.one_line(line)


def _responses(path: str) -> Iterator[str]:
    """Yield the model's messages; every line of the log starts with the speaker."""
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
