"""Run any other program: it gets the prompt on stdin, or as `{prompt_file}` in its command line, and answers on stdout.

`{model}` in the command line is replaced with the model's name. Cost and tokens are unknown.
"""

from __future__ import annotations

import os

from learnt.clients.kit import run as kit
from learnt.errors import WrongRequest
from learnt.text.templates import fill_in, takes_prompt_file


def build_call(request: kit.RunRequest) -> kit.Call:
    """Return the configured command line, with its placeholders filled in."""
    words = kit.split(request.command) + request.arguments
    if not words:
        raise WrongRequest(
            "no command is set for the agent `command`", hint='set `command = "…"` under [work] in learnt.toml'
        )
    path = os.path.join(request.scratch, "prompt.md")
    as_file = takes_prompt_file(words)
    return kit.Call(
        client="command",
        argv=fill_in(words, prompt_file=path, model=request.model),
        stdin="" if as_file else request.prompt,
        files={path: request.prompt} if as_file else {},
        model=request.model,
        scratch=request.scratch,
    )


def read_report(output: kit.Output) -> kit.RunReport:
    """Return the program's whole output as its answer."""
    text = kit.plain_text(output.stdout)
    return kit.RunReport(text=text, said=text, model=output.call.model, error=kit.failure(output))


def format_progress(line: str) -> str:
    """Return the line itself."""
    return kit.one_line(line)
