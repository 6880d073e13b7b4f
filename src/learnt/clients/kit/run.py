"""How a client is run without a person: what is asked of it, how it is started, and what its output says.

A client's `run` module provides the functions `call`, `read` and `progress`. Nothing here starts a process, reads the
clock or looks at the environment; `loop/agents` runs what `call` describes. Output is foreign: lines may be broken,
huge or no text at all, and reading them gives less, never an error.
"""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from learnt.clients import registry
from learnt.model import Value
from learnt.text.clean import fold
from learnt.text.templates import split_command_line

# A longer line of a client's stream is skipped: it holds a tool's output, never an answer.
LINE_LIMIT = 8_000_000
# How much of a plain text output is kept; the end, because an agent says last how it went.
TEXT_LIMIT = 4_000_000
ERROR_LIMIT = 2_000
PROGRESS_LIMIT = 160
# The arguments of a tool that say most about a call, the best first.
_TELLING_ARGUMENTS = "command cmd file_path filePath absolute_path path pattern query url prompt".split()


class RunRequest(Value):
    """What an agent shall do, and with what. `folder` and `scratch` are absolute; `scratch` belongs to this run."""

    prompt: str
    folder: str
    scratch: str
    model: str = ""
    arguments: tuple[str, ...] = ()
    # Another way to start the client than its name on PATH; for `command`, the whole command line.
    command: str = ""


class Call(Value):
    """How a client is started: `files` are written first.

    Of the environment, the agent does not get what `without` names, and gets `environment` on top.
    """

    client: str
    argv: tuple[str, ...]
    stdin: str = ""
    environment: Mapping[str, str] = {}
    without: tuple[str, ...] = ()
    files: Mapping[str, str] = {}
    model: str = ""
    scratch: str = ""


class Output(Value):
    """What a run left behind; `variables` holds those variables of `registry.FOLDER_VARIABLES` that the agent had."""

    call: Call
    folder: str
    stdout: str
    stderr: str
    exit_code: int | None
    variables: Mapping[str, str] = {}


class RunReport(Value):
    """What a client reports about its run. `text` is the last message, `said` all that the agent itself said, in order.

    Figures are None when the client reports none. `tokens_in` counts all that the model read, `tokens_cached` the part
    of it that came from a cache. `denied` names what the agent was not allowed to do, as far as the client says.
    `error` is empty when the client ended well.
    """

    text: str = ""
    said: str = ""
    model: str = ""
    cost_usd: float | None = None
    tokens_in: int | None = None
    tokens_cached: int | None = None
    tokens_out: int | None = None
    transcript: str = ""
    denied: tuple[str, ...] = ()
    error: str = ""


class Runner(Protocol):
    """The `run` module of a client."""

    def call(self, request: RunRequest) -> Call:
        """Return how the client is started for this request."""

    def read(self, output: Output) -> RunReport:
        """Return what the client reports about its run."""

    def progress(self, line: str) -> str:
        """Return a line of output as one short line for a person who watches, or nothing."""


def call(name: str, request: RunRequest) -> Call:
    """Return how the client of this name is started for the request."""
    return _runner(name).call(request)


def read(output: Output) -> RunReport:
    """Return what the client reports about its run."""
    return _runner(output.call.client).read(output)


def progress(call: Call, line: str) -> str:
    """Return a line of output as one short line for a person who watches, or nothing."""
    return _runner(call.client).progress(line)


def _runner(name: str) -> Runner:
    runner: Runner = registry.load(registry.get(name, "run"), "run")
    return runner


def find_folder(variables: Mapping[str, str], variable: str, *below_home: str) -> str:
    """Return the folder that the variable names, or the default below the home folder."""
    home = variables.get("HOME") or variables.get("USERPROFILE") or ""
    return variables.get(variable) or (os.path.join(home, *below_home) if home else "")


def program(request: RunRequest, name: str) -> tuple[str, ...]:
    """Return the words that start the client: the configured ones, or its name."""
    return split(request.command) or (name,)


def split(command: str) -> tuple[str, ...]:
    """Return the words of a command line, as a shell would see them."""
    return split_command_line(command, setting="`command` under [work] in learnt.toml")


def option(request: RunRequest, *words: str, unless: Sequence[str] = ()) -> tuple[str, ...]:
    """Return an option with its values; nothing when the user's own arguments name it, or one of the others."""
    names = {argument.partition("=")[0] for argument in request.arguments}
    return () if names.intersection((words[0], *unless)) else words


def model_option(request: RunRequest, *short: str) -> tuple[str, ...]:
    """Return the words that choose the model, when one is asked for; `short`: what the option is called, too."""
    return option(request, "--model", request.model, unless=short) if request.model else ()


def records(path: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of a file with one per line, or of a file that is one object; skip the rest."""
    is_empty = True
    for line in lines(path):
        for record in _objects(line.decode("utf-8", "replace")):
            is_empty = False
            yield record
    if is_empty:
        yield from _objects(plain_text(path, LINE_LIMIT))


def _objects(text: str) -> list[dict[str, Any]]:
    """Return the JSON object that a text is, or the objects of the list that it is."""
    if not text.lstrip().startswith(("{", "[")):
        return []
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return [part for part in (value if isinstance(value, list) else [value]) if isinstance(part, dict)]


def lines(path: str) -> Iterator[bytes]:
    """Yield the lines of a file, but none that is too long; nothing when the file cannot be read."""
    try:
        with open(path, "rb") as file:
            while line := file.readline(LINE_LIMIT):
                if line.endswith(b"\n") or len(line) < LINE_LIMIT:
                    yield line
                else:
                    while (rest := file.readline(LINE_LIMIT)) and not rest.endswith(b"\n"):
                        pass
    except OSError:
        return


def plain_text(path: str, limit: int = TEXT_LIMIT) -> str:
    """Return the end of a file as text; what comes before is counted, not kept."""
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - limit))
            text = file.read(limit).decode("utf-8", "replace")
    except OSError:
        return ""
    return f"[{size - limit} bytes left out]\n{text}" if size > limit else text


def failure(output: Output, reported: str = "") -> str:
    """Return why the client failed: its own report, or the end of its stderr; empty when it did not fail."""
    if reported:
        return shorten(reported, ERROR_LIMIT)
    if output.exit_code == 0:
        return ""
    ending = "it did not end by itself" if output.exit_code is None else f"exit code {output.exit_code}"
    complaint = plain_text(output.stderr, ERROR_LIMIT).strip()
    return f"{ending}: {complaint}" if complaint else ending


def shorten(text: str, limit: int) -> str:
    """Return the text, cut where it is too long."""
    text = text.strip()
    return text if len(text) <= limit else text[: limit - 1] + "…"


def one_line(text: object) -> str:
    """Return a text as one short line without control characters."""
    return shorten(fold(str(text)[: 4 * PROGRESS_LIMIT]), PROGRESS_LIMIT)


def tool_line(name: object, arguments: object) -> str:
    """Return a line about a tool call: its name and the argument that says most."""
    if isinstance(arguments, Mapping):
        arguments = next((arguments[key] for key in _TELLING_ARGUMENTS if arguments.get(key)), "")
    return one_line(f"{name} {arguments or ''}")


def join_messages(messages: Sequence[str]) -> str:
    """Return several messages as one text."""
    return "\n\n".join(message.strip() for message in messages if message.strip())


def newest(folder: str, ending: str, *, depth: int) -> str:
    """Return the file below the folder whose name ends like this, the last one by name; nothing when there is none."""
    if not folder or os.path.basename(ending) != ending or not os.path.isdir(folder):
        return ""
    pattern = os.path.join(glob.escape(folder), *["*"] * depth, f"*{glob.escape(ending)}")
    return max(glob.iglob(pattern), default="", key=os.path.basename)
